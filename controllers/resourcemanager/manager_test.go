// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }, crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)...))
}

const deadline = 30 * time.Second

// testEnv is a namespace of an API server, with a client that writes ManagedResources as other
// tools do.
type testEnv struct {
	testing.TB
	ctx context.Context
	ns  string
	api dynamic.Interface
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	s := &testEnv{TB: t, ns: fmt.Sprintf("rm%d-%d", os.Getpid(), server.count.Add(1))}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	api, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	s.api = api
	s.create("{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")
	return s
}

// startClass runs a manager of a class; the function stops it.
func (s *testEnv) startClass(class string) (m *Manager, stop func()) {
	s.Helper()
	return s.startManager(s.newManagerOfClass(class))
}

func (s *testEnv) startManager(m *Manager, closed func()) (_ *Manager, stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(s, m.Start(ctx))
	}()
	stop = func() {
		cancel()
		<-ended
		closed()
	}
	return m, sync.OnceFunc(stop)
}

// newManagerOfClass returns a manager that is not started.
func (s *testEnv) newManagerOfClass(class string) (m *Manager, closed func()) {
	s.Helper()
	return s.newManager(Options{Class: class, Namespace: s.ns})
}

// newManager returns a manager whose target is its source, unless the options have a cluster ID.
func (s *testEnv) newManager(o Options) (m *Manager, closed func()) {
	s.Helper()
	source, err := conventions.NewCluster("local", server.config, SourceOptions(""))
	require.NoError(s, err)
	target, err := conventions.NewCluster("remote", server.config, apply.ClusterOptions{})
	require.NoError(s, err)
	if o.Source, o.Target = source, target; o.ClusterID == "" {
		o.Target = source
	}
	o.Log = slog.New(slog.NewTextHandler(&testLog{TB: s.TB}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	m, err = New(o)
	require.NoError(s, err)
	return m, func() { source.Close(); target.Close() }
}

// testLog is the log of a test.
type testLog struct{ testing.TB }

func (l *testLog) Write(p []byte) (int, error) {
	l.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (s *testEnv) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", s.ns)))
	require.NoError(s, err)
	require.NoError(s, o.UnmarshalJSON(raw))
	return o
}

// configMapManifest is a manifest.
const configMapManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: NS}\ndata: {a: b}\n"

// createDataSecret creates a data Secret of manifests by key.
func (s *testEnv) createDataSecret(manifests map[string]any) {
	s.Helper()
	o := s.object("{apiVersion: v1, kind: Secret, metadata: {name: data, namespace: NS}}")
	for key, text := range manifests {
		manifests[key] = strings.ReplaceAll(text.(string), "NS", s.ns)
	}
	o.Object["stringData"] = manifests
	_, err := s.resource(o).Create(s.ctx, o, metav1.CreateOptions{})
	require.NoError(s, err)
}

func (s *testEnv) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr := o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(o.GetKind()) + "s")
	if o.GetNamespace() == "" {
		return s.api.Resource(gvr)
	}
	return s.api.Resource(gvr).Namespace(o.GetNamespace())
}

func (s *testEnv) create(text string) *unstructured.Unstructured {
	s.Helper()
	o := s.object(text)
	created, err := s.resource(o).Create(s.ctx, o, metav1.CreateOptions{})
	require.NoError(s, err)
	return created
}

func (s *testEnv) patch(kind, name, patch string) {
	s.Helper()
	o := s.reference(kind, name)
	raw, err := yaml.YAMLToJSON([]byte(patch))
	require.NoError(s, err)
	_, err = s.resource(o).Patch(s.ctx, name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(s, err)
}

func (s *testEnv) reference(kind, name string) *unstructured.Unstructured {
	gv := schema.GroupVersion{Version: "v1"}
	switch kind {
	case "ManagedResource":
		gv = resourcesv1alpha1.SchemeGroupVersion
	case "Deployment", "StatefulSet":
		gv.Group = "apps"
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gv.WithKind(kind))
	o.SetNamespace(s.ns)
	o.SetName(name)
	return o
}

func (s *testEnv) get(kind, name string) (*unstructured.Unstructured, error) {
	return s.resource(s.reference(kind, name)).Get(s.ctx, name, metav1.GetOptions{})
}

// eventually polls until the condition holds.
func (s *testEnv) eventually(what string, holds func() bool) {
	s.Helper()
	require.Eventually(s, holds, deadline, 20*time.Millisecond, what)
}

func (s *testEnv) waitForObject(kind, name string) {
	s.Helper()
	s.eventually(kind+" "+name+" is there", func() bool { _, err := s.get(kind, name); return err == nil })
}

func (s *testEnv) waitForDeletion(kind, name string) {
	s.Helper()
	s.eventually(kind+" "+name+" is gone", func() bool { _, err := s.get(kind, name); return apierrors.IsNotFound(err) })
}

// conditions returns those of a ManagedResource as TYPE=STATUS/REASON.
func (s *testEnv) conditions(name string) map[string]string {
	s.Helper()
	o, err := s.get("ManagedResource", name)
	if err != nil {
		return nil
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	require.NoError(s, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, mr))
	out := map[string]string{}
	for _, c := range mr.Status.Conditions {
		out[string(c.Type)] = string(c.Status) + "/" + c.Reason
	}
	return out
}

func (s *testEnv) waitForConditions(name string, want ...string) {
	s.Helper()
	var have map[string]string
	holds := func() bool {
		have = s.conditions(name)
		for _, w := range want {
			kind, value, _ := strings.Cut(w, "=")
			if have[kind] != value {
				return false
			}
		}
		return true
	}
	if !assert.Eventually(s, holds, deadline, 20*time.Millisecond) {
		o, _ := s.get("ManagedResource", name)
		require.Fail(s, "conditions", "want %v, have %v of\n%v", want, have, o)
	}
}

var healthyConditions = []string{"ResourcesApplied=True/ApplySucceeded", "ResourcesHealthy=True/ResourcesHealthy", "ResourcesProgressing=False/ResourcesRolledOut"}

// TestClasses: ManagedResources in upstream's format are deployed for each class in use, with
// upstream's conditions.
func TestClasses(t *testing.T) {
	for name, class := range map[string]struct{ manager, spec, finalizer string }{
		"default":       {"", "", resourcesv1alpha1.FinalizerName},
		"default named": {"resources", "", resourcesv1alpha1.FinalizerName},
		"seed":          {"seed", "class: seed", resourcesv1alpha1.FinalizerName + "-seed"},
		"custom":        {"mine", "class: mine", resourcesv1alpha1.FinalizerName + "-mine"},
		"all":           {"*", "class: other", resourcesv1alpha1.FinalizerName},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			s.createDataSecret(map[string]any{"a.yaml": configMapManifest})
			s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {" + strings.TrimPrefix(class.spec+", ", ", ") + "secretRefs: [{name: data}], injectLabels: {x: z}}}")
			if class.manager != "*" {
				s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: foreign, namespace: NS}, spec: {class: nobody, secretRefs: [{name: data}]}}")
			}
			_, stop := s.startClass(class.manager)
			defer stop()
			s.waitForConditions("thing", healthyConditions...)
			mr, err := s.get("ManagedResource", "thing")
			require.NoError(t, err)
			assert.Equal(t, []string{class.finalizer}, mr.GetFinalizers())
			found, err := s.get("ConfigMap", "one")
			require.NoError(t, err)
			assert.Equal(t, "z", found.GetLabels()["x"])
			assert.Equal(t, "gardener", found.GetLabels()[resourcesv1alpha1.ManagedBy])
			if class.manager != "*" {
				assert.Equal(t, s.ns+"/thing", found.GetAnnotations()[resourcesv1alpha1.Origin])
				assert.Empty(t, s.conditions("foreign"))
			}

			require.NoError(t, s.resource(mr).Delete(s.ctx, "thing", metav1.DeleteOptions{}))
			s.waitForDeletion("ManagedResource", "thing")
			if class.manager != "*" {
				s.waitForDeletion("ConfigMap", "one")
			}
		})
	}
}

func brotliCompress(t testing.TB, text string) []byte {
	var out bytes.Buffer
	w := brotli.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestAppliesChangesAndRepairsDrift: changes of Secrets and of the ManagedResource are applied,
// drift is repaired, and health is reported. An unchanged cluster gets no requests.
func TestAppliesChangesAndRepairsDrift(t *testing.T) {
	s := newTestEnv(t)
	secret := s.object("{apiVersion: v1, kind: Secret, metadata: {name: data, namespace: NS}}")
	deployment := s.object("{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: NS}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}")
	text, err := yaml.Marshal(deployment)
	require.NoError(t, err)
	config := "\n---\n" + strings.ReplaceAll(configMapManifest, "NS", s.ns)
	secret.Object["data"] = map[string]any{"data.yaml.br": brotliCompress(t, string(text)+config)}
	_, err = s.resource(secret).Create(s.ctx, secret, metav1.CreateOptions{})
	require.NoError(t, err)
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {class: seed, secretRefs: [{name: data}]}}")
	m, stop := s.startClass("seed")
	defer stop()
	s.waitForConditions("thing", "ResourcesApplied=True/ApplySucceeded", "ResourcesHealthy=False/DeploymentUnhealthy")
	require.NoError(t, m.Ready())

	// Imitate a kubelet: the pods run.
	live, err := s.get("Deployment", "app")
	require.NoError(t, err)
	live.Object["status"] = map[string]any{"observedGeneration": live.GetGeneration(), "replicas": int64(0), "updatedReplicas": int64(0), "availableReplicas": int64(0),
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}}
	require.NoError(t, unstructured.SetNestedField(live.Object, int64(0), "spec", "replicas"))
	_, err = s.resource(live).UpdateStatus(s.ctx, live, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.waitForConditions("thing", "ResourcesHealthy=True/ResourcesHealthy")

	// Drift of a field and of an object.
	s.patch("ConfigMap", "one", "data: {a: other}")
	s.eventually("the field is repaired", func() bool {
		o, err := s.get("ConfigMap", "one")
		value, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return err == nil && value == "b"
	})
	before, err := s.get("ConfigMap", "one")
	require.NoError(t, err)
	require.NoError(t, s.resource(before).Delete(s.ctx, "one", metav1.DeleteOptions{}))
	s.eventually("the object is there again", func() bool {
		o, err := s.get("ConfigMap", "one")
		return err == nil && o.GetUID() != before.GetUID()
	})

	// New content of the Secret: removed objects are deleted.
	secret.Object["data"] = map[string]any{"data.yaml.br": brotliCompress(t, strings.ReplaceAll(config, "name: one", "name: two"))}
	_, err = s.resource(secret).Update(s.ctx, secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.waitForObject("ConfigMap", "two")
	s.eventually("the Deployment is being deleted", func() bool {
		o, err := s.get("Deployment", "app")
		return err == nil && o.GetDeletionTimestamp() != nil
	})
	// the garbage collector of Kubernetes does not run here
	s.patch("Deployment", "app", "metadata: {finalizers: null}")
	s.waitForDeletion("ConfigMap", "one")
	s.waitForConditions("thing", healthyConditions...)

	// Without changes there are no requests, not even by a periodic reconciliation.
	key := types.NamespacedName{Namespace: s.ns, Name: "thing"}
	looked := func() bool { // a periodic reconciliation sets the time of the next one
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.dueTimes[key].After(time.Now())
	}
	s.eventually("it is quiet", func() bool { return looked() && m.queue.Len() == 0 })
	requests := func() apply.RequestCounts { // an earlier watch may be counted late
		counts := m.options.Source.Requests()
		delete(counts, "watch")
		return counts
	}
	quiet := requests()
	m.enqueue(key, true)
	s.eventually("it was looked at", looked)
	assert.Equal(t, quiet, requests())

	s.patch("ManagedResource", "thing", "metadata: {annotations: {resources.gardener.cloud/ignore: 'true'}}")
	s.waitForConditions("thing", "ResourcesApplied=True/ManagedResourceIgnored")
	s.patch("ConfigMap", "two", "data: {a: other}")
	s.patch("ManagedResource", "thing", "metadata: {annotations: {resources.gardener.cloud/ignore: null}}")
	s.waitForConditions("thing", healthyConditions...)
	s.eventually("the field is repaired", func() bool {
		o, err := s.get("ConfigMap", "two")
		value, _, _ := unstructured.NestedString(o.Object, "data", "a")
		return err == nil && value == "b"
	})
}

// TestClassChangeRecreatesObjects: after a change of the class, the old instance deletes its
// objects before the new one starts.
func TestClassChangeRecreatesObjects(t *testing.T) {
	s := newTestEnv(t)
	s.createDataSecret(map[string]any{"a.yaml": configMapManifest})
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {class: seed, secretRefs: [{name: data}]}}")
	_, stopSeed := s.startClass("seed")
	defer stopSeed()
	s.waitForConditions("thing", healthyConditions...)
	before, err := s.get("ConfigMap", "one")
	require.NoError(t, err)
	stopSeed()

	_, stopMine := s.startClass("mine")
	defer stopMine()
	s.patch("ManagedResource", "thing", "spec: {class: mine}")
	s.eventually("the new one waits", func() bool {
		mr, err := s.get("ManagedResource", "thing")
		return err == nil && len(mr.GetFinalizers()) == 1 && mr.GetFinalizers()[0] == resourcesv1alpha1.FinalizerName+"-seed"
	})
	_, stopSeed = s.startClass("seed")
	defer stopSeed()
	s.eventually("another object is there", func() bool {
		o, err := s.get("ConfigMap", "one")
		return err == nil && o.GetUID() != before.GetUID()
	})
	s.eventually("the new one has it", func() bool {
		mr, err := s.get("ManagedResource", "thing")
		return err == nil && len(mr.GetFinalizers()) == 1 && mr.GetFinalizers()[0] == resourcesv1alpha1.FinalizerName+"-mine"
	})
	s.waitForConditions("thing", healthyConditions...)
}

// TestMissingSecret: a missing Secret is reported, and applied once it exists.
func TestMissingSecret(t *testing.T) {
	s := newTestEnv(t)
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {secretRefs: [{name: data}]}}")
	m, closed := s.newManagerOfClass("")
	var told atomic.Value
	m.options.Event = func(mr *resourcesv1alpha1.ManagedResource, reason, message string) {
		told.Store(mr.Name + " " + reason + " " + message)
	}
	_, stop := s.startManager(m, closed)
	defer stop()
	s.waitForConditions("thing", "ResourcesApplied=False/CannotReadSecret")
	s.eventually("an event tells it", func() bool { text, _ := told.Load().(string); return strings.Contains(text, "/data") })
	s.createDataSecret(map[string]any{"a.yaml": "{", "b.yaml": configMapManifest})
	s.waitForObject("ConfigMap", "one")
	s.waitForConditions("thing", "ResourcesApplied=False/DecodingFailed")
	s.patch("Secret", "data", "data: {a.yaml: null}")
	s.waitForConditions("thing", healthyConditions...)
}
