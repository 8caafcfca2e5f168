// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// testEnvironment is the part of the API server for one test. It has a person who writes
// ManagedResources as other tools do, foreign objects, and the wanted final state.
type testEnvironment struct {
	testing.TB
	ctx context.Context
	ns  string
	api dynamic.Interface
	// observer reads inventories.
	observer *apply.Cluster
	// wantedObjects are the objects of each ManagedResource; others should not exist.
	wantedObjects   map[string][]*unstructured.Unstructured
	classByResource map[string]string
	foreignObjects  []*unstructured.Unstructured
	secretCount     int
	// hasInFlightCreates is set while inventories may list more than exists: objects that a
	// previous process is creating.
	hasInFlightCreates bool
	// transports are those of all processes so far. Their writes must be in allowedWrites, their
	// deletions also in allowedDeletions.
	transports                      []*transport
	allowedWrites, allowedDeletions map[string]bool
}

func newWorld(t testing.TB, patience time.Duration) *testEnvironment {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	w := &testEnvironment{TB: t, ns: fmt.Sprintf("f%d-%d", os.Getpid(), suite.count.Add(1)), wantedObjects: map[string][]*unstructured.Unstructured{}, classByResource: map[string]string{},
		allowedWrites: map[string]bool{}, allowedDeletions: map[string]bool{}}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	api, err := dynamic.NewForConfig(suite.config)
	require.NoError(t, err)
	w.api = api
	w.observer, err = conventions.NewCluster("observer", suite.config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(w.observer.Close)
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")
	t.Cleanup(w.deleteNamespace)
	w.createForeign("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: NS}, data: {a: b}}")
	w.createForeign("{apiVersion: v1, kind: ConfigMap, metadata: {name: lookalike, namespace: NS, labels: {resources.gardener.cloud/managed-by: gardener}, annotations: {resources.gardener.cloud/origin: elsewhere/thing}}, data: {a: b}}")
	w.createForeign("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: theirs, namespace: NS, finalizers: [resources.gardener.cloud/gardener-resource-manager-theirs]}, spec: {class: theirs, secretRefs: [{name: none}]}, status: {}}")
	return w
}

// deleteNamespace deletes the namespace without waiting. It removes finalizers that a failed test
// left: they would block the definition of ManagedResources and fail all following tests.
func (w *testEnvironment) deleteNamespace() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	mr := w.reference("ManagedResource", "")
	_ = w.resource(mr).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if left, err := w.resource(mr).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range left.Items {
			_, _ = w.resource(mr).Patch(ctx, left.Items[i].GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	ns := w.object("{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")
	_ = w.resource(ns).Delete(ctx, w.ns, metav1.DeleteOptions{})
}

// object reads YAML and replaces NS by the namespace of the test.
func (w *testEnvironment) object(text string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", w.ns)))
	require.NoError(w, err)
	require.NoError(w, o.UnmarshalJSON(raw))
	return o
}

func (w *testEnvironment) objects(texts ...string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, text := range texts {
		out = append(out, w.object(text))
	}
	return out
}

// configMaps makes n ConfigMaps with a value.
func (w *testEnvironment) configMaps(n int, value string) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, n)
	for i := range n {
		out = append(out, w.object(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: NS}, data: {key: %q}}", i, value)))
	}
	return out
}

func (w *testEnvironment) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvk := o.GroupVersionKind()
	resource := w.api.Resource(gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"))
	if o.GetNamespace() == "" {
		return resource
	}
	return resource.Namespace(o.GetNamespace())
}

func pathOf(o *unstructured.Unstructured) string {
	gv := o.GroupVersionKind().GroupVersion()
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	if o.GetNamespace() != "" {
		path += "/namespaces/" + o.GetNamespace()
	}
	return path + "/" + strings.ToLower(o.GetKind()) + "s/" + o.GetName()
}

func (w *testEnvironment) reference(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	if kind == "ManagedResource" {
		o.SetAPIVersion(resourcesv1alpha1.SchemeGroupVersion.String())
	}
	o.SetKind(kind)
	o.SetNamespace(w.ns)
	o.SetName(name)
	return o
}

func (w *testEnvironment) get(kind, name string) (*unstructured.Unstructured, error) {
	return w.resource(w.reference(kind, name)).Get(w.ctx, name, metav1.GetOptions{})
}

func (w *testEnvironment) create(text string) *unstructured.Unstructured {
	w.Helper()
	o := w.object(text)
	created, err := w.resource(o).Create(w.ctx, o, metav1.CreateOptions{FieldManager: "somebody"})
	require.NoError(w, err)
	return created
}

// createForeign creates an object that must not change.
func (w *testEnvironment) createForeign(text string) {
	w.Helper()
	w.foreignObjects = append(w.foreignObjects, w.create(text))
}

func (w *testEnvironment) patch(o *unstructured.Unstructured, text string) {
	w.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(w, err)
	_, err = w.resource(o).Patch(w.ctx, o.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(w, err)
}

// createDataSecret creates a data Secret and returns its name.
func (w *testEnvironment) createDataSecret(objects []*unstructured.Unstructured) string {
	w.Helper()
	w.secretCount++
	name := fmt.Sprintf("data-%d", w.secretCount)
	w.writeDataSecret(name, objects)
	return name
}

// writeDataSecret writes a data Secret.
func (w *testEnvironment) writeDataSecret(name string, objects []*unstructured.Unstructured) {
	w.Helper()
	var packed bytes.Buffer
	brotlied := brotli.NewWriterLevel(&packed, 3)
	for _, o := range objects {
		raw, err := o.MarshalJSON()
		require.NoError(w, err)
		_, err = fmt.Fprintf(brotlied, "---\n%s\n", raw)
		require.NoError(w, err)
	}
	require.NoError(w, brotlied.Close())
	secret := w.reference("Secret", name)
	secret.Object["data"] = map[string]any{"data.yaml.br": packed.Bytes()}
	_, err := w.resource(secret).Create(w.ctx, secret, metav1.CreateOptions{FieldManager: "somebody"})
	if apierrors.IsAlreadyExists(err) {
		_, err = w.resource(secret).Update(w.ctx, secret, metav1.UpdateOptions{FieldManager: "somebody"})
	}
	require.NoError(w, err)
}

// setWanted sets the wanted objects of a ManagedResource and allows writing them.
func (w *testEnvironment) setWanted(mr, class string, objects []*unstructured.Unstructured) {
	w.wantedObjects[mr], w.classByResource[mr] = objects, class
	w.allowedWrites[pathOf(w.reference("ManagedResource", mr))] = true
	for _, o := range objects {
		w.allowedWrites[pathOf(o)] = true
	}
}

// declareResource creates or changes a ManagedResource with a new Secret.
func (w *testEnvironment) declareResource(mr, class string, objects []*unstructured.Unstructured) {
	w.Helper()
	data := w.createDataSecret(objects)
	if w.wantedObjects[mr] == nil {
		w.create(fmt.Sprintf("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: %s, namespace: NS}, spec: {class: %s, secretRefs: [{name: %s}]}}", mr, class, data))
	} else {
		w.patch(w.reference("ManagedResource", mr), fmt.Sprintf("{spec: {class: %s, secretRefs: [{name: %s}]}}", class, data))
	}
	w.setWanted(mr, class, objects)
}

// deleteResource deletes a ManagedResource.
func (w *testEnvironment) deleteResource(mr string) {
	w.Helper()
	for _, o := range w.wantedObjects[mr] {
		w.allowedDeletions[pathOf(o)] = true
	}
	delete(w.wantedObjects, mr)
	require.NoError(w, w.resource(w.reference("ManagedResource", mr)).Delete(w.ctx, mr, metav1.DeleteOptions{}))
}

// allowDeletion allows the deletion of an object.
func (w *testEnvironment) allowDeletion(objects ...*unstructured.Unstructured) {
	for _, o := range objects {
		w.allowedDeletions[pathOf(o)] = true
	}
}

// engineProcess is an engine with its own connections.
type engineProcess struct {
	*transport
	*resourcemanager.Manager
	class string
	kill  func() // ends it at once, without any further request
	end   func() // ends it as a signal does
}

// processOptions are the options of a process.
type processOptions struct {
	config  *rest.Config
	line    *transport
	cluster apply.ClusterOptions
	manager resourcemanager.Options
}

// startEngine runs an engine of a class, which ends no later than the test.
func (w *testEnvironment) startEngine(class string, tweaks ...func(*processOptions)) *engineProcess {
	w.Helper()
	s := processOptions{config: rest.CopyConfig(suite.config), line: &transport{}, cluster: resourcemanager.SourceOptions("")}
	s.cluster.Cooldown = 50 * time.Millisecond
	s.manager = resourcemanager.Options{Class: class, Namespace: w.ns, Log: w.log(), Timing: resourcemanager.Timing{StartupGrace: time.Second}}
	for _, tweak := range tweaks {
		tweak(&s)
	}
	s.config.Wrap(s.line.wrapTransport)
	cluster, err := conventions.NewCluster("faulty", s.config, s.cluster)
	require.NoError(w, err)
	s.manager.Source, s.manager.Target = cluster, cluster
	m, err := resourcemanager.New(s.manager)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(w, m.Start(ctx))
	}()
	w.transports = append(w.transports, s.line)
	p := &engineProcess{transport: s.line, Manager: m, class: class}
	p.end = sync.OnceFunc(func() {
		cancel()
		<-ended
		cluster.Close()
		p.disconnect()
	})
	p.kill = func() { p.disconnect(); p.end() }
	w.Cleanup(p.kill)
	return p
}

// testLogWriter logs to a test.
type testLogWriter struct{ testing.TB }

func (l *testLogWriter) Write(p []byte) (int, error) {
	l.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (w *testEnvironment) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(&testLogWriter{TB: w.TB}, nil))
}

// inventory returns the objects in the inventory of a ManagedResource.
func (w *testEnvironment) inventory(mr *unstructured.Unstructured) ([]string, error) {
	decoded, err := managedresource.Decode(w.observer, mr)
	if err != nil {
		return nil, err
	}
	entries, err := (&managedresource.Reconciler{Source: w.observer, Target: w.observer}).Inventory(decoded).Load(w.ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(e.GVK())
		o.SetNamespace(e.Namespace)
		o.SetName(e.Name)
		out = append(out, pathOf(o))
	}
	slices.Sort(out)
	return out, nil
}
