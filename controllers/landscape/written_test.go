package landscape

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

// written is a landscape in a folder, with a new converger for each sync, as after a commit.
type written struct {
	*testing.T
	dir   string
	clock *clocktesting.FakeClock
	gate  permit.Gate
	// changes modifies the options of each converger.
	changes func(*Options)
}

func newWritten(t *testing.T, name string, files map[string]string) *written {
	t.Helper()
	needsServer(t)
	w := &written{T: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(time.Now()), gate: permit.DefaultGate()}
	forgetLandscapes(t)
	w.write("landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: "+name+"}\n")
	for file, text := range files {
		w.write(file, text)
	}
	return w
}

// forgetLandscapes deletes the objects and inventories of landscapes at the end of the test: other
// tests could adopt them.
func forgetLandscapes(t *testing.T) {
	t.Cleanup(func() {
		maps := resource(t, testMaps, owner.InventoryNamespace)
		all, err := maps.List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, o := range all.Items {
			if strings.HasPrefix(o.GetLabels()[owner.LabelInventory], "landscape.") {
				require.NoError(t, maps.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}))
			}
		}
		for _, kind := range []schema.GroupVersionResource{shoots, testMaps} {
			require.NoError(t, resource(t, kind, "default").DeleteCollection(context.Background(), metav1.DeleteOptions{},
				metav1.ListOptions{LabelSelector: conventions.ManagedResourceKeys().Selector()}))
		}
	})
}

func (w *written) write(file, text string) {
	w.Helper()
	require.NoError(w, os.MkdirAll(filepath.Dir(filepath.Join(w.dir, file)), 0o700))
	require.NoError(w, os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600))
}

func (w *written) remove(file string) {
	w.Helper()
	require.NoError(w, os.Remove(filepath.Join(w.dir, file)))
}

// converger returns a converger for the current files.
func (w *written) converger() *Converger {
	w.Helper()
	l, violations, err := landscapes.Load(w.Context(), w.dir, landscapes.Options{})
	require.NoError(w, err)
	require.Empty(w, violations)
	config := rest.CopyConfig(server.config)
	options := Options{Connect: Connections{Configs: map[string]*rest.Config{Runtime: config, Virtual: config}}, Clock: w.clock, Permits: Permits{Gate: w.gate}, Self: Self{Holder: "test"}}
	if w.changes != nil {
		w.changes(&options)
	}
	// Without owners, because their inputs are not declared.
	c, err := connect(l, options)
	require.NoError(w, err)
	w.Cleanup(c.Close)
	return c
}

// sync applies the declarations of the virtual garden; the report has the result.
func (w *written) sync() (*Converger, error) {
	w.Helper()
	c := w.converger()
	w.clock.Step(time.Second)
	err := c.applyDeclarations(testContext(w.T), Virtual, split(c.landscape)[Virtual])
	if err == nil {
		err = c.answerRemovals(testContext(w.T))
	}
	return c, err
}

func (w *written) mustSync() *Converger {
	w.Helper()
	c, err := w.sync()
	require.NoError(w, err)
	return c
}

var shoots = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}
var testMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func resource(t *testing.T, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	return client.Resource(gvr).Namespace(namespace)
}

// liveShoot reads a Shoot from the server.
func liveShoot(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	live, err := resource(t, shoots, "default").Get(testContext(t), name, metav1.GetOptions{})
	require.NoError(t, err)
	return live
}

// updateAs updates a Shoot as a controller does.
func updateAs(t *testing.T, name, manager string, mutate func(*unstructured.Unstructured)) {
	t.Helper()
	live := liveShoot(t, name)
	mutate(live)
	_, err := resource(t, shoots, "default").Update(testContext(t), live, metav1.UpdateOptions{FieldManager: manager})
	require.NoError(t, err)
}

// annotate patches a Shoot.
func annotate(t *testing.T, name, manager, body string) {
	t.Helper()
	_, err := resource(t, shoots, "default").Patch(testContext(t), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager})
	require.NoError(t, err)
}

func value(t *testing.T, o *unstructured.Unstructured, path string) any {
	t.Helper()
	v, _, err := unstructured.NestedFieldCopy(o.Object, strings.Split(path, ".")...)
	require.NoError(t, err)
	return v
}

// pool returns the first worker pool of a Shoot.
func pool(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	workers, _, err := unstructured.NestedSlice(o.Object, "spec", "provider", "workers")
	require.NoError(t, err)
	return workers[0].(map[string]any)
}
