// SPDX-License-Identifier: Apache-2.0

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

// folderLandscape is a landscape in a folder, with a new converger for each sync, as after a
// commit.
type folderLandscape struct {
	*testing.T
	dir   string
	clock *clocktesting.FakeClock
	gate  permit.Gate
	// changeOptions modifies the options of each converger.
	changeOptions func(*Options)
}

func newFolderLandscape(t *testing.T, name string, files map[string]string) *folderLandscape {
	t.Helper()
	needsServer(t)
	w := &folderLandscape{T: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(time.Now()), gate: permit.DefaultGate()}
	deleteLandscapesAtEnd(t)
	w.write("landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: "+name+"}\n")
	for file, text := range files {
		w.write(file, text)
	}
	return w
}

// deleteLandscapesAtEnd deletes the objects and inventories of landscapes at the end of the test:
// other tests could adopt them.
func deleteLandscapesAtEnd(t *testing.T) {
	t.Cleanup(func() {
		maps := resourceClient(t, configMapResource, owner.InventoryNamespace)
		all, err := maps.List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, o := range all.Items {
			if strings.HasPrefix(o.GetLabels()[owner.LabelInventory], "landscape.") {
				require.NoError(t, maps.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}))
			}
		}
		for _, kind := range []schema.GroupVersionResource{shootResource, configMapResource} {
			require.NoError(t, resourceClient(t, kind, "default").DeleteCollection(context.Background(), metav1.DeleteOptions{},
				metav1.ListOptions{LabelSelector: conventions.ManagedResourceKeys().Selector()}))
		}
	})
}

func (w *folderLandscape) write(file, text string) {
	w.Helper()
	require.NoError(w, os.MkdirAll(filepath.Dir(filepath.Join(w.dir, file)), 0o700))
	require.NoError(w, os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600))
}

func (w *folderLandscape) remove(file string) {
	w.Helper()
	require.NoError(w, os.Remove(filepath.Join(w.dir, file)))
}

// newConverger returns a converger for the current files.
func (w *folderLandscape) newConverger() *Converger {
	w.Helper()
	l, violations, err := landscapes.Load(w.Context(), w.dir, landscapes.Options{})
	require.NoError(w, err)
	require.Empty(w, violations)
	config := rest.CopyConfig(server.config)
	options := Options{Connections: Connections{Configs: map[string]*rest.Config{Runtime: config, Virtual: config}}, Clock: w.clock, Permits: Permits{Gate: w.gate}, Process: ProcessIdentity{Holder: "test"}}
	if w.changeOptions != nil {
		w.changeOptions(&options)
	}
	// Without owners, because their inputs are not declared.
	c, err := newConverger(l, options)
	require.NoError(w, err)
	w.Cleanup(c.Close)
	return c
}

// sync applies the declarations of the virtual garden; the report has the result.
func (w *folderLandscape) sync() (*Converger, error) {
	w.Helper()
	c := w.newConverger()
	w.clock.Step(time.Second)
	err := c.applyDeclarations(testContext(w.T), Virtual, splitByCluster(c.landscape)[Virtual])
	if err == nil {
		err = c.answerRemovalQuestions(testContext(w.T))
	}
	return c, err
}

func (w *folderLandscape) mustSync() *Converger {
	w.Helper()
	c, err := w.sync()
	require.NoError(w, err)
	return c
}

var shootResource = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}
var configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func resourceClient(t *testing.T, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	return client.Resource(gvr).Namespace(namespace)
}

// liveShoot reads a Shoot from the server.
func liveShoot(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	live, err := resourceClient(t, shootResource, "default").Get(testContext(t), name, metav1.GetOptions{})
	require.NoError(t, err)
	return live
}

// updateShootAs updates a Shoot as a controller does.
func updateShootAs(t *testing.T, name, manager string, mutate func(*unstructured.Unstructured)) {
	t.Helper()
	live := liveShoot(t, name)
	mutate(live)
	_, err := resourceClient(t, shootResource, "default").Update(testContext(t), live, metav1.UpdateOptions{FieldManager: manager})
	require.NoError(t, err)
}

// patchShoot patches a Shoot.
func patchShoot(t *testing.T, name, manager, body string) {
	t.Helper()
	_, err := resourceClient(t, shootResource, "default").Patch(testContext(t), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager})
	require.NoError(t, err)
}

func fieldValue(t *testing.T, o *unstructured.Unstructured, path string) any {
	t.Helper()
	v, _, err := unstructured.NestedFieldCopy(o.Object, strings.Split(path, ".")...)
	require.NoError(t, err)
	return v
}

// firstPool returns the first worker pool of a Shoot.
func firstPool(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	workers, _, err := unstructured.NestedSlice(o.Object, "spec", "provider", "workers")
	require.NoError(t, err)
	return workers[0].(map[string]any)
}
