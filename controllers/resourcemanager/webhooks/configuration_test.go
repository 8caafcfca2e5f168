// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/webhook/admission"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// allWebhooks enables all webhooks.
func allWebhooks() Webhooks {
	on := Switch{Enabled: true}
	return Webhooks{
		CRDDeletionProtection: on, EndpointSliceHints: on, ExtensionValidation: on, PodKubeAPIServerLoadBalancing: on, PodTopologySpreadConstraints: on,
		SeccompProfile: on, VPAInPlaceUpdates: on, ProjectedTokenMount: ProjectedTokenMount{Enabled: true}, PodSchedulerName: PodSchedulerName{Enabled: true},
		HighAvailabilityConfig: HighAvailabilityConfig{Enabled: true}, SystemComponentsConfig: SystemComponentsConfig{Enabled: true},
		KubernetesServiceHost: KubernetesServiceHost{Enabled: true, Host: "api.example.com"},
	}
}

// upstreamWebhooks returns upstream's webhooks by name.
func upstreamWebhooks(t *testing.T, file string) (mutating map[string]admissionregistrationv1.MutatingWebhook, validating map[string]admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "objects", filepath.FromSlash(file)))
	require.NoError(t, err)
	mutating, validating = map[string]admissionregistrationv1.MutatingWebhook{}, map[string]admissionregistrationv1.ValidatingWebhook{}
	for _, text := range strings.Split(string(data), "\n---") {
		var document any
		if yaml.Unmarshal([]byte(text), &document) != nil {
			continue // a separator inside a text
		}
		collect(t, document, mutating, validating)
	}
	return mutating, validating
}

func collect(t *testing.T, value any, mutating map[string]admissionregistrationv1.MutatingWebhook, validating map[string]admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			collect(t, item, mutating, validating)
		}
	case map[string]any:
		kind, _ := v["kind"].(string)
		webhooks, _ := v["webhooks"].([]any)
		for _, webhook := range webhooks {
			// A placeholder replaces the CA bundle, and is not base64.
			delete(webhook.(map[string]any)["clientConfig"].(map[string]any), "caBundle")
			raw, err := json.Marshal(webhook)
			require.NoError(t, err)
			switch kind {
			case "MutatingWebhookConfiguration":
				var w admissionregistrationv1.MutatingWebhook
				require.NoError(t, json.Unmarshal(raw, &w))
				mutating[w.Name] = w
			case "ValidatingWebhookConfiguration":
				var w admissionregistrationv1.ValidatingWebhook
				require.NoError(t, json.Unmarshal(raw, &w))
				validating[w.Name] = w
			}
		}
		for _, item := range v {
			collect(t, item, mutating, validating)
		}
	}
}

// TestConfigurationsMatchUpstream checks that our configurations match upstream's.
func TestConfigurationsMatchUpstream(t *testing.T) {
	for file, responsibility := range map[string]Responsibility{
		"seed/gardener-resourcemanager/reconcile-example.yaml":           ForRuntime,
		"garden/gardener-resourcemanager-runtime/reconcile-example.yaml": ForRuntime,
		"garden/gardener-resourcemanager/default.yaml":                   ForRuntime,
		"shoot/gardener-resourcemanager/reconcile-example.yaml":          ForTarget,
	} {
		t.Run(file, func(t *testing.T) {
			mutating, validating := upstreamWebhooks(t, file)
			require.NotEmpty(t, mutating)
			c := Configuration{Webhooks: allWebhooks(), Responsibility: responsibility, VirtualGarden: true}
			namespace := map[string]string{"garden/gardener-resourcemanager/default.yaml": "fake-ns"}[file]
			if namespace == "" {
				namespace = "garden"
			}
			c.Target.Service = &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "gardener-resource-manager"}
			if responsibility == ForTarget {
				c.Target = admission.Target{URL: "https://gardener-resource-manager.shoot--dev--crazy-botany:443"}
				require.Empty(t, validating)
			} else {
				require.Len(t, validating, 15)
			}
			ours, err := MutatingWebhookConfiguration(c)
			require.NoError(t, err)
			compared := 0
			for _, webhook := range ours.Webhooks {
				want, ok := mutating[webhook.Name]
				// this test of upstream has made-up selectors
				if !ok || namespace == "fake-ns" && strings.Contains(webhook.Name, "load-balancing") {
					continue
				}
				compared++
				assert.Equal(t, asJSON(t, want), asJSON(t, webhook), webhook.Name)
				delete(mutating, webhook.Name)
			}
			assert.GreaterOrEqual(t, compared, 4)
			if namespace != "fake-ns" {
				assert.Empty(t, mutating, "not configured")
			}
			theirs, err := ValidatingWebhookConfiguration(c)
			require.NoError(t, err)
			for _, webhook := range theirs.Webhooks {
				if want, ok := validating[webhook.Name]; ok {
					assert.Equal(t, asJSON(t, want), asJSON(t, webhook), webhook.Name)
					delete(validating, webhook.Name)
				}
			}
			assert.Empty(t, validating, "not configured")
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.MarshalIndent(value, "", " ")
	require.NoError(t, err)
	return string(data)
}

func TestConfigurationNames(t *testing.T) {
	c := Configuration{Responsibility: ForTarget, NamePrefix: "virtual-garden-", Target: admission.Target{URL: "https://grm.garden:443"}}
	mutating, err := MutatingWebhookConfiguration(c)
	require.NoError(t, err)
	assert.Equal(t, "virtual-garden-gardener-resource-manager-shoot", mutating.Name)
	assert.Equal(t, map[string]string{"app": "virtual-garden-gardener-resource-manager"}, mutating.Labels)
	assert.Empty(t, mutating.Webhooks, "all are off")
	validating, err := ValidatingWebhookConfiguration(Configuration{Responsibility: ForRuntime})
	require.NoError(t, err)
	assert.Equal(t, "gardener-resource-manager", validating.Name)
	assert.Equal(t, map[string]string{"app": "gardener-resource-manager", "remediation.webhook.shoot.gardener.cloud/exclude": "true"}, validating.Labels)
	assert.Empty(t, validating.Webhooks, "all are off")

	c.Webhooks, c.Target = allWebhooks(), admission.Target{URL: "http://plain"}
	_, err = MutatingWebhookConfiguration(c)
	assert.ErrorContains(t, err, "https://HOST:PORT")
	_, err = ValidatingWebhookConfiguration(c)
	assert.ErrorContains(t, err, "https://HOST:PORT")
}
