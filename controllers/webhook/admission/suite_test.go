// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// unvalidatedUser is a user whose requests skip the validating webhook. It creates objects from
// before the webhook.
const unvalidatedUser = "unasked"

// testServer is an API server with all definitions and webhooks.
type testServer struct {
	testing.TB
	ctx context.Context
	// api is an ordinary client; past uses the user whose requests skip the webhook.
	api, unvalidated client.Client
	handler          *Handler
	config           *rest.Config
	// stop stops the webhooks.
	stop func()
	// byDefinition, byWebhook and allowed count the verdicts of agrees.
	byDefinition, byWebhook, allowed int
}

func newTestServer(t *testing.T) *testServer { return newTestServerWith(t, nil) }

// newTestServerWith is newTestServer with surroundings.
func newTestServerWith(t *testing.T, reader func(context.Context, *rest.Config) (ObjectLister, error)) *testServer {
	t.Helper()
	config := apiserver.Start(t)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)

	w := &testServer{TB: t, ctx: ctx, config: config}
	w.api = w.client(config)
	other := rest.CopyConfig(config)
	other.Impersonate = rest.ImpersonationConfig{UserName: unvalidatedUser, Groups: []string{"system:masters"}}
	w.unvalidated = w.client(other)
	w.installDefinitions()
	var surroundings ObjectLister
	if reader != nil {
		var err error
		surroundings, err = reader(ctx, config)
		require.NoError(t, err)
	}
	w.startWebhooks(surroundings)
	return w
}

func (w *testServer) client(config *rest.Config) client.Client {
	scheme := runtime.NewScheme()
	require.NoError(w, clientgoscheme.AddToScheme(scheme))
	require.NoError(w, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(w, err)
	return client.WithFieldValidation(c, "Strict")
}

func (w *testServer) installDefinitions() {
	for _, crd := range crds.All() {
		require.NoError(w, w.api.Create(w.ctx, crd), crd.Name)
	}
	for _, crd := range crds.All() {
		w.eventually(crd.Name+" is served", func() (bool, error) {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.api.Get(w.ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return false, err
			}
			for _, condition := range live.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return true, nil
				}
			}
			return false, nil
		})
	}
	for _, name := range []string{"garden", "garden-local"} {
		require.NoError(w, w.api.Create(w.ctx, decodeObject(w, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}")))
	}
}

// startWebhooks starts the server on a free port and configures the API server to call it.
func (w *testServer) startWebhooks(surroundings ObjectLister) {
	gardens, err := NewLiveGardens(w.config)
	require.NoError(w, err)
	w.handler, err = New(w.ctx, Options{Gardens: gardens, ObjectLister: surroundings, Log: slog.New(slog.DiscardHandler)})
	require.NoError(w, err)
	ca := filepath.Join(w.TempDir(), "ca.crt")
	certificates, err := SelfSignedCertificates([]string{"localhost", "127.0.0.1"}, ca)
	require.NoError(w, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	stop := sync.OnceFunc(func() {
		cancel()
		assert.NoError(w, <-done)
	})
	w.stop = stop
	w.Cleanup(stop)
	server := &Server{Handler: w.handler, Certificates: certificates, Webhooks: listener, Log: slog.New(slog.DiscardHandler)}
	go func() { done <- server.Run(ctx) }()

	bundle, err := os.ReadFile(ca)
	require.NoError(w, err)
	target := Target{URL: "https://" + listener.Addr().String(), CABundle: bundle}
	for _, cluster := range []Cluster{ClusterRuntime, ClusterVirtual} {
		validating, err := ValidatingWebhookConfiguration(cluster, target)
		require.NoError(w, err)
		for i := range validating.Webhooks {
			validating.Webhooks[i].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "asked", Expression: "request.userInfo.username != '" + unvalidatedUser + "'"}}
		}
		require.NoError(w, w.api.Create(w.ctx, validating))
		mutating, err := MutatingWebhookConfiguration(cluster, target)
		require.NoError(w, err)
		require.NoError(w, w.api.Create(w.ctx, mutating))
	}
	// API servers load configurations with a delay.
	for _, probe := range []*unstructured.Unstructured{
		decodeObject(w, "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Extension\nmetadata: {name: probe, namespace: garden}\nspec: {type: ''}"),
		decodeObject(w, "apiVersion: core.gardener.cloud/v1beta1\nkind: ExposureClass\nmetadata: {name: no.label}\nhandler: a"),
	} {
		w.eventually("the webhook is asked about "+probe.GetKind(), func() (bool, error) {
			return apierrors.IsInvalid(w.api.Create(w.ctx, probe.DeepCopy(), client.DryRunAll)), nil
		})
	}
	w.eventually("defaults are asked for", func() (bool, error) {
		seed := landscapeObject(w, "seeds/local.yaml", "Seed")
		unstructured.RemoveNestedField(seed.Object, "spec", "settings")
		err := w.unvalidated.Create(w.ctx, seed, client.DryRunAll)
		_, found, _ := unstructured.NestedMap(seed.Object, "spec", "settings", "scheduling")
		return found, err
	})
}

func (w *testServer) eventually(what string, ok func() (bool, error)) {
	w.Helper()
	require.NoError(w, wait.PollUntilContextTimeout(w.ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return ok() }), what)
}

// createUnvalidated creates an object as before the webhook, with its status and deletion
// timestamp. It is deleted after the test.
func (w *testServer) createUnvalidated(t *testing.T, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	w.ensureNamespace(object)
	live := object.DeepCopy()
	deleting := live.GetDeletionTimestamp() != nil
	if deleting && len(live.GetFinalizers()) == 0 {
		live.SetFinalizers([]string{"pergola.dev/test"})
	}
	live.SetDeletionTimestamp(nil)
	if err := w.unvalidated.Create(w.ctx, live); err != nil {
		return nil, err
	}
	t.Cleanup(func() { w.forceDelete(live) })
	if status, ok := object.Object["status"]; ok {
		live.Object["status"] = status
		if err := w.unvalidated.Status().Update(w.ctx, live); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	if deleting {
		if err := w.unvalidated.Delete(w.ctx, live); err != nil {
			return nil, err
		}
	}
	return live, w.unvalidated.Get(w.ctx, client.ObjectKeyFromObject(live), live)
}

// forceDelete deletes an object despite its finalizers.
func (w *testServer) forceDelete(object *unstructured.Unstructured) {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	target := object.DeepCopy()
	if err := w.unvalidated.Patch(w.ctx, target, patch); !apierrors.IsNotFound(err) {
		require.NoError(w, err)
	}
	require.NoError(w, client.IgnoreNotFound(w.unvalidated.Delete(w.ctx, target)))
}

func (w *testServer) ensureNamespace(object *unstructured.Unstructured) {
	if object.GetNamespace() == "" {
		return
	}
	namespace := &corev1.Namespace{}
	namespace.Name = object.GetNamespace()
	if err := w.unvalidated.Create(w.ctx, namespace); !apierrors.IsAlreadyExists(err) {
		require.NoError(w, err)
	}
}

func decodeObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, object.UnmarshalJSON(data))
	return object
}

// decodeManifest parses the objects of a manifest.
func decodeManifest(t testing.TB, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range regexp.MustCompile(`(?m)^---.*$`).Split(string(data), -1) {
		var content map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &content))
		if len(content) > 0 {
			objects = append(objects, decodeObject(t, text))
		}
	}
	return objects
}

// landscapeObject returns an object of the demonstration landscape, which satisfies all rules.
func landscapeObject(t testing.TB, file, kind string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "landscapes", "local", filepath.FromSlash(file)))
	require.NoError(t, err)
	for _, object := range decodeManifest(t, data) {
		if object.GetKind() == kind {
			return object
		}
	}
	require.Fail(t, "no "+kind+" in "+file)
	return nil
}

// mergeYAML merges YAML into an object: maps are merged, lists replaced, null deletes.
func mergeYAML(t testing.TB, object *unstructured.Unstructured, text string) *unstructured.Unstructured {
	t.Helper()
	over := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &over))
	result := object.DeepCopy()
	mergeFields(result.Object, over)
	// numbers as the API machinery has them
	return decodeObject(t, string(encodeJSON(t, result.Object)))
}

func encodeJSON(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return data
}

func mergeFields(base, over map[string]any) {
	for name, value := range over {
		before, wasMap := base[name].(map[string]any)
		after, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(base, name)
		case wasMap && isMap:
			mergeFields(before, after)
		default:
			base[name] = value
		}
	}
}

func readFile(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}
