// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server = config }))
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connectAs is a connection to the test server with the identity of a ServiceAccount,
// "namespace:name", or of an administrator without one.
func connectAs(t *testing.T, account string, requests *requestLog) *apply.Cluster {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	config := rest.CopyConfig(server)
	if account != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + account}
	}
	if requests != nil {
		config.Wrap(requests.wrapTransport)
	}
	c, err := conventions.NewCluster("test", config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// requestLog records forbidden requests.
type requestLog struct {
	mu        sync.Mutex
	forbidden []string
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *requestLog) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && resp.StatusCode == http.StatusForbidden {
			body, readErr := io.ReadAll(resp.Body)
			if readErr != nil {
				return nil, readErr
			}
			resp.Body = io.NopCloser(bytes.NewReader(body))
			// A policy without its parameters yet is not a missing right; the caller waits for it.
			if !bytes.Contains(body, []byte("failed to configure policy")) {
				w.forbidden = append(w.forbidden, r.Method+" "+r.URL.Path)
			}
		}
		return resp, err
	})
}

func (w *requestLog) forbiddenRequests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.forbidden...)
}

// renderRole renders a role with its minimal values, and others.
func renderRole(t *testing.T, role deploy.Role, values ...map[string]any) *deploy.Installation {
	t.Helper()
	all := map[string]any{
		"image":     map[string]any{"repository": "pergola"},
		"gardenlet": map[string]any{"seed": "local"},
	}
	for _, v := range values {
		for key, value := range v {
			all[key] = value
		}
	}
	out, err := deploy.Render(deploy.Options{Role: role, Values: all})
	require.NoError(t, err)
	return out
}

// applyAsAdmin applies objects as an administrator, like kubectl apply --server-side, and waits for
// definitions.
func applyAsAdmin(t *testing.T, c *apply.Cluster, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		namespace(t, c, o.GetNamespace())
		require.NoError(t, sendObject(t, c, o, false), "%s %s", o.GetKind(), o.GetName())
		if o.GetKind() == "CustomResourceDefinition" {
			waitForDefinition(t, c, o.GetName())
		}
	}
}

func sendObject(t *testing.T, c *apply.Cluster, o *unstructured.Unstructured, dry bool) error {
	t.Helper()
	mapping, err := c.Mapping(testContext(t), o.GroupVersionKind())
	if err != nil {
		c.ResetMapping()
		if mapping, err = c.Mapping(testContext(t), o.GroupVersionKind()); err != nil {
			return err
		}
	}
	options := metav1.ApplyOptions{FieldManager: "test", Force: true}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = c.Dynamic().Resource(mapping.Resource).Namespace(o.GetNamespace()).Apply(testContext(t), o.GetName(), o, options)
	return err
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func waitForDefinition(t *testing.T, c *apply.Cluster, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		crd, err := c.Dynamic().Resource(definitions).Get(testContext(t), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, item := range conditions {
			if m, _ := item.(map[string]any); m["type"] == "Established" && m["status"] == "True" {
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)
	c.ResetMapping()
}

func namespace(t *testing.T, c *apply.Cluster, name string) {
	t.Helper()
	if name == "" {
		return
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err := c.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(testContext(t), o, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// resolvePlaceholders replaces names that only a cluster knows.
func resolvePlaceholders(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	out := &unstructured.Unstructured{}
	require.NoError(t, out.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), "XXXXXXXX", "00000000"))))
	return out
}
