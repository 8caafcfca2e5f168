// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditEvent is the needed part of an event.
type auditEvent struct {
	Kind      string `json:"kind"`
	Level     string `json:"level"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Namespace, Name string
	} `json:"objectRef"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`
}

// TestAudit: only events that the policy names are recorded, with the parts of their level.
func TestAudit(t *testing.T) {
	skipIfNotRunning(t)
	for _, test := range []struct {
		name  string
		plane func(*testing.T) *controlPlaneClient
		// told returns the events so far.
		told func(*testing.T, *controlPlaneClient) ([]auditEvent, error)
		// configMaps is the level of events about ConfigMaps.
		configMaps string
	}{
		{"a Shoot, to its log", func(t *testing.T) *controlPlaneClient { return connectShoot(t, shootAESGCM) }, auditEventsInLogs, "Request"},
		{"the Garden, to a webhook", connectGarden, auditEventsAtWebhook, "RequestResponse"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := test.plane(t)
			in, out := p.ensureNamespace(t, "audited"), p.ensureNamespace(t, "not-audited")
			name := fmt.Sprintf("audited-%d", time.Now().UnixNano())
			meta := metav1.ObjectMeta{Name: name}
			for _, namespace := range []string{out, in} {
				_, err := p.apiClient.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"value": "secret"}}, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			_, err := p.apiClient.CoreV1().ServiceAccounts(in).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = p.apiClient.CoreV1().ConfigMaps(in).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"value": "plain"}}, metav1.CreateOptions{})
			require.NoError(t, err)

			found := map[string]auditEvent{}
			pollUntil(t, func(context.Context) error {
				events, err := test.told(t, p)
				if err != nil {
					return err
				}
				for _, e := range events {
					if e.Verb == "create" && (e.ObjectRef.Name == name || e.ObjectRef.Name == "") && bytes.Contains(e.RequestObject, []byte(name)) || e.ObjectRef.Name == name {
						found[e.ObjectRef.Namespace+"/"+e.ObjectRef.Resource] = e
					}
				}
				if _, ok := found[in+"/configmaps"]; !ok { // the last event
					return fmt.Errorf("no event of ConfigMap %s among %d", name, len(events))
				}
				return nil
			})
			assert.Len(t, found, 2, "neither the ServiceAccount nor the Secret of the other namespace")
			secret, configMap := found[in+"/secrets"], found[in+"/configmaps"]
			assert.Equal(t, "Metadata", secret.Level)
			assert.Empty(t, secret.RequestObject, "a secret is not told")
			assert.Empty(t, secret.ResponseObject)
			assert.Equal(t, test.configMaps, configMap.Level)
			assert.Contains(t, string(configMap.RequestObject), `"value":"plain"`)
			if test.configMaps == "RequestResponse" {
				assert.Contains(t, string(configMap.ResponseObject), `"value":"plain"`)
			} else {
				assert.Empty(t, configMap.ResponseObject)
			}
		})
	}
}

// auditEventsInLogs returns the events in the logs of API servers.
func auditEventsInLogs(t *testing.T, p *controlPlaneClient) (events []auditEvent, err error) {
	for _, pod := range p.pods(t, apiServerPods) {
		out, err := env.RunLocal("logs", p.cluster, p.namespace+"/"+pod.Name)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(out) {
			var e auditEvent
			if json.Unmarshal(line, &e) == nil && e.Kind == "Event" {
				events = append(events, e)
			}
		}
	}
	return events, nil
}

// auditEventsAtWebhook returns the events that the webhook received.
func auditEventsAtWebhook(*testing.T, *controlPlaneClient) (events []auditEvent, err error) {
	bodies, err := env.server.requestsTo("/audit")
	if err != nil {
		return nil, err
	}
	for _, body := range bodies {
		var list struct{ Items []auditEvent }
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, err
		}
		events = append(events, list.Items...)
	}
	return events, nil
}
