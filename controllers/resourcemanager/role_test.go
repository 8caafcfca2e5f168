// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).Port
}

// TestRole runs all components of a configuration, with the lease: each component works and reports
// its work.
func TestRole(t *testing.T) {
	s := newTestEnv(t)
	folder := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
	health, metrics, webhooks := freePort(t), freePort(t), freePort(t)
	c, err := ReadConfiguration(writeConfiguration(t, configurationHead+strings.NewReplacer("NS", s.ns, "HEALTH", fmt.Sprint(health), "METRICS", fmt.Sprint(metrics), "WEBHOOKS", fmt.Sprint(webhooks), "FOLDER", folder).Replace(`
sourceClientConnection: {namespaces: [NS]}
leaderElection: {resourceNamespace: NS}
server:
  healthProbes: {bindAddress: 127.0.0.1, port: HEALTH}
  metrics: {bindAddress: 127.0.0.1, port: METRICS}
  webhooks: {bindAddress: 127.0.0.1, port: WEBHOOKS, tls: {serverCertDir: FOLDER}}
debugging: {enableProfiling: true}
controllers:
  garbageCollector: {enabled: true}
  tokenRequestor: {enabled: true}
  networkPolicy: {enabled: true, namespaceSelectors: [{matchLabels: {kubernetes.io/metadata.name: NS}}]}
webhooks:
  seccompProfile: {enabled: true}
`)))
	require.NoError(t, err)
	handler := slog.NewTextHandler(&testLog{TB: t}, nil)
	ctrllog.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	role := &Role{Configuration: c, Source: server.config, Log: slog.New(handler)}
	go func() { ended <- role.Run(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()

	s.createManagedResource("thing", configMap("one"))
	s.waitForConditions("thing", healthyConditions...)
	lease, err := s.api.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(s.ns).Get(s.ctx, "gardener-resource-manager", metav1.GetOptions{})
	require.NoError(t, err)
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	assert.NotEmpty(t, holder)

	s.create("{apiVersion: v1, kind: Secret, metadata: {name: access, namespace: NS, labels: {resources.gardener.cloud/purpose: token-requestor, resources.gardener.cloud/class: shoot}, " +
		"annotations: {serviceaccount.resources.gardener.cloud/name: account, serviceaccount.resources.gardener.cloud/namespace: NS}}}")
	s.eventually("the token is there", func() bool {
		o, err := s.get("Secret", "access")
		token, _, _ := unstructured.NestedString(o.Object, "data", "token")
		return err == nil && token != ""
	})
	s.create("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: NS, annotations: {networking.resources.gardener.cloud/from-world-to-ports: '[{\"port\":80,\"protocol\":\"TCP\"}]'}}, spec: {selector: {a: b}, ports: [{port: 80}]}}")
	policies := s.api.Resource(schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}).Namespace(s.ns)
	s.eventually("the policy is there", func() bool {
		list, err := policies.List(s.ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) > 0
	})

	get := func(client *http.Client, url string) (int, string) {
		resp, err := client.Get(url)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for path, want := range map[string]string{"healthz": "ok", "readyz": "ok"} {
		status, body := get(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/%s", health, path))
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, want, body)
	}
	status, body := get(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics))
	assert.Equal(t, http.StatusOK, status)
	for _, want := range []string{`pergola_managedresources{condition="ResourcesHealthy",status="True"} 1`, `pergola_managedresource_objects_total{action="created"} 1`,
		`pergola_managedresource_reconcile_duration_seconds_count{result="applied"}`, `pergola_api_requests_total{cluster="source",verb="patch"} `,
		"pergola_managedresource_contested_objects 0", `workqueue_depth{controller="managedresource"`, "pergola_token_requestor_renewals_total{", "pergola_garbage_collector_"} {
		assert.Contains(t, body, want)
	}
	status, _ = get(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/cmdline", metrics))
	assert.Equal(t, http.StatusOK, status)
	// any response will do
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	status, _ = get(insecure, fmt.Sprintf("https://127.0.0.1:%d/", webhooks))
	assert.Equal(t, http.StatusNotFound, status)
}

// TestRoleWithoutCertificate: a Role whose webhooks have no certificate does not start.
func TestRoleWithoutCertificate(t *testing.T) {
	c := &Configuration{}
	c.Default()
	c.Webhooks.SeccompProfile.Enabled = true
	c.Server.Webhooks.TLS.ServerCertDir = t.TempDir()
	c.LeaderElection.LeaderElect = ptr.To(false)
	s := newTestEnv(t)
	err := (&Role{Configuration: c, Source: server.config, Log: slog.New(slog.DiscardHandler)}).Run(s.ctx)
	require.ErrorContains(t, err, "server.webhooks.tls.serverCertDir")
}
