// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/webhook/admission"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

const deadline = 30 * time.Second

// testServer is an API server that calls the webhooks of this process.
type testServer struct {
	testing.TB
	ctx   context.Context
	api   client.Client
	count atomic.Int64
}

// TestOnAPIServer tests the webhooks with one API server.
func TestOnAPIServer(t *testing.T) {
	w := newTestServer(t)
	for name, test := range map[string]func(*testing.T, *testServer){
		"PodsGetTheirToken":         testPodsGetTheirToken,
		"PodsAreCompleted":          testPodsAreCompleted,
		"SystemComponentsArePlaced": testSystemComponentsArePlaced,
		"Target":                    testSystemNamespaces,
		"LoadIsBalanced":            testLoadIsBalanced,
		"OtherKindsAreCompleted":    testOtherKindsAreCompleted,
		"WorkloadIsSpread":          testWorkloadIsSpread,
		"WorkloadIsScaled":          testWorkloadIsScaled,
		"DeletionIsConfirmed":       testDeletionIsConfirmed,
		"CollectionsAreConfirmed":   testCollectionsAreConfirmed,
		"DefinitionsAreProtected":   testDefinitionsAreProtected,
		"ExtensionsAreValidated":    testExtensionsAreValidated,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// newTestServer starts all webhooks with a cache, as in a cluster. The API server calls them for a
// runtime cluster and for a target at once.
func newTestServer(t *testing.T) *testServer {
	t.Helper()
	config := apiserver.Start(t)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	ctrllog.SetLogger(logr.Discard())
	definitions := append(crds.ByGroup(extensionsv1alpha1.SchemeGroupVersion.Group), crds.ByGroup(druidv1alpha1.SchemeGroupVersion.Group)...)
	definitions = append(definitions, permissiveDefinition("autoscaling.k8s.io", "VerticalPodAutoscaler", "verticalpodautoscalers"))
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: definitions})
	require.NoError(t, err)

	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	api, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	cached, err := cache.New(config, cache.Options{Scheme: scheme})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	w := &testServer{TB: t, ctx: ctx, api: client.WithFieldValidation(api, "Strict")}
	var running sync.WaitGroup
	// Stop before the API server, which waits for its watches.
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() { assert.NoError(t, cached.Start(ctx)) })

	webhooks := allWebhooks()
	webhooks.PodSchedulerName.SchedulerName = "bin-packing-scheduler"
	webhooks.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = ptr.To[int64](60)
	webhooks.SystemComponentsConfig.NodeSelector = map[string]string{"system-components": "true"}
	webhooks.SystemComponentsConfig.PodNodeSelector = map[string]string{"system-components": "true"}
	handler, err := New(ctx, Options{Webhooks: webhooks, Source: api, Target: cached, Live: api})
	require.NoError(t, err)
	target, serve := listen(t, handler)
	running.Go(func() { assert.NoError(t, serve(ctx)) })
	for _, responsibility := range []Responsibility{ForRuntime, ForTarget} {
		mutating, err := MutatingWebhookConfiguration(Configuration{Webhooks: webhooks, Responsibility: responsibility, VirtualGarden: true, Target: target})
		require.NoError(t, err)
		require.NoError(t, api.Create(ctx, mutating))
	}
	validating, err := ValidatingWebhookConfiguration(Configuration{Webhooks: webhooks, Responsibility: ForRuntime, Target: target})
	require.NoError(t, err)
	require.NoError(t, api.Create(ctx, validating))
	w.waitForConfigurations()
	return w
}

// permissiveDefinition returns the definition of a kind without a schema.
func permissiveDefinition(group, kind, resource string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource + "." + group}}
	// The API server requires this for groups of Kubernetes.
	d.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, for tests"}
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: resource},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}}}
	return d
}

// listen returns the address of the webhooks and their server.
func listen(t *testing.T, handler http.Handler) (admission.Target, func(context.Context) error) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	certificates, err := admission.SelfSignedCertificates([]string{"localhost", "127.0.0.1"}, ca)
	require.NoError(t, err)
	bundle, err := os.ReadFile(ca)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	running := &admission.Server{Handler: handler, Certificates: certificates, Webhooks: listener, Log: slog.New(slog.DiscardHandler)}
	return admission.Target{URL: "https://" + listener.Addr().String(), CABundle: bundle}, running.Run
}

// waitForConfigurations waits until the API server uses all configurations, which takes some time.
func (w *testServer) waitForConfigurations() {
	w.Helper()
	require.NoError(w, w.api.Create(w.ctx, parseObject("{apiVersion: v1, kind: Namespace, metadata: {name: probe, labels: {gardener.cloud/role: extension}}}")))
	for _, namespace := range []string{"probe", "kube-system"} {
		w.eventually("pods in "+namespace+" are asked about", func() bool {
			pod := parseObject("{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: " + namespace + "}, spec: {containers: [{name: a, image: a}]}}")
			err := w.api.Create(w.ctx, pod, client.DryRunAll)
			_, found, _ := unstructured.NestedMap(pod.Object, "spec", "securityContext", "seccompProfile")
			return err == nil && found
		})
	}
	w.eventually("extension objects are asked about", func() bool {
		wrong := parseObject("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Extension, metadata: {name: probe, namespace: default}, spec: {type: ''}}")
		return apierrors.IsInvalid(w.api.Create(w.ctx, wrong, client.DryRunAll))
	})
}

func (w *testServer) eventually(what string, ok func() bool) {
	w.Helper()
	require.Eventually(w, ok, deadline, 20*time.Millisecond, what)
}

// parseObject parses an object of the test.
func parseObject(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = object.UnmarshalJSON(raw)
	}
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return object
}

// testNamespace is a namespace.
type testNamespace struct {
	*testServer
	ns string
}

// newTestNamespace creates a namespace with labels and annotations, as in {labels: {…}}.
func newTestNamespace(t *testing.T, w *testServer, metadata string) *testNamespace {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
	t.Cleanup(cancel)
	s := &testNamespace{&testServer{TB: t, ctx: ctx, api: w.api}, fmt.Sprintf("site%d", w.count.Add(1))}
	namespace := parseObject("{apiVersion: v1, kind: Namespace, metadata: " + metadata + "}")
	namespace.SetName(s.ns)
	require.NoError(t, s.api.Create(ctx, namespace))
	return s
}

// tryCreate creates an object in the namespace.
func (s *testNamespace) tryCreate(text string) (*unstructured.Unstructured, error) {
	object := parseObject(text)
	object.SetNamespace(s.ns)
	err := s.api.Create(s.ctx, object)
	return object, err
}

func (s *testNamespace) create(text string) *unstructured.Unstructured {
	s.Helper()
	object, err := s.tryCreate(text)
	require.NoError(s, err)
	return object
}

func (s *testNamespace) pod(text string) *corev1.Pod {
	s.Helper()
	return convertObject[corev1.Pod](s, s.create(text))
}

func convertObject[T any](t testing.TB, object *unstructured.Unstructured) *T {
	t.Helper()
	value := new(T)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, value))
	return value
}

// patch merges YAML into an object.
func (s *testNamespace) patch(object *unstructured.Unstructured, text string) error {
	s.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(s, err)
	return s.api.Patch(s.ctx, object, client.RawPatch("application/merge-patch+json", raw))
}
