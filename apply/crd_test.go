// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// widgets returns a CustomResourceDefinition whose group belongs to the test.
func (f *fixture) widgets() *unstructured.Unstructured {
	return f.object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
`)
}

func (f *fixture) widget(name string) *unstructured.Unstructured {
	return f.object(`{apiVersion: NS.example.com/v1, kind: Widget, metadata: {name: ` + name + `, namespace: NS}, spec: {size: 1}}`)
}

func TestDefinitionAndObjectInOneSet(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.widget("w"), f.widgets(), f.configMap("c", "x"))
	r := f.mustApply(set)
	assert.Equal(t, 3, r.Count(Created))
	assert.Empty(t, f.requests(func() { f.mustApply(set) }))

	// A definition that leaves the set stays; its objects are deleted.
	r = f.mustApply(f.set(f.configMap("c", "x")))
	assert.Equal(t, map[string]Action{"ConfigMap/c": Unchanged, "Widget/w": Deleted,
		"CustomResourceDefinition/" + f.widgets().GetName(): Retained}, actions(r))

	// Deleting the set deletes the definition last, and not while an object of its kind is stuck.
	stuck := f.widget("stuck")
	stuck.SetFinalizers([]string{"test.example.com/stuck"})
	f.mustApply(f.set(f.widgets(), stuck))
	r, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{Timeout: 200 * time.Millisecond})
	assert.Equal(t, ReasonStuckDeletion, ReasonOf(err))
	assert.Equal(t, 2, r.Count(Deleting))
	assert.Contains(t, r.Objects[len(r.Objects)-1].Message, "waits until Widget")
	f.removeFinalizers(stuck)
	_, err = f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.False(t, f.exists(f.widgets()))
}

func TestObjectsOfAFailedDefinitionAreSkipped(t *testing.T) {
	f := newFixture(t)
	bad := f.widgets()
	require.NoError(t, unstructured.SetNestedField(bad.Object, "Somewhere", "spec", "scope"))
	r, err := f.apply(f.set(bad, f.widget("w"), f.configMap("c", "x")))
	var all Errors
	require.ErrorAs(t, err, &all)
	require.Len(t, all, 2)
	assert.Equal(t, ReasonInvalid, all[0].Reason, "root cause first")
	assert.Equal(t, ReasonSkippedDependency, all[1].Reason)
	assert.Equal(t, "Widget", all[1].Object.Kind)
	assert.Contains(t, all[1].Message, "because CustomResourceDefinition widgets")
	assert.Equal(t, Created, actions(r)["ConfigMap/c"])
	assert.NotContains(t, f.inventory(), "Widget/w")
}

func TestUnknownKind(t *testing.T) {
	f := newFixture(t)
	r, err := f.apply(f.set(f.widget("w"), f.configMap("c", "x")))
	assert.Equal(t, ReasonKindNotServed, ReasonOf(err))
	assert.ErrorContains(t, err, "install the CustomResourceDefinition")
	assert.Equal(t, Created, actions(r)["ConfigMap/c"])
}

func TestClusterScopedObjectsLoseTheirNamespace(t *testing.T) {
	f := newFixture(t)
	role := f.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-role, namespace: NS}, rules: []}`)
	bare := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: NS-bare}}`)
	f.mustApply(f.set(role, bare))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	for _, e := range entries {
		want := map[string]string{"ClusterRole": "", "ConfigMap": "default"}[e.Kind]
		assert.Equal(t, want, e.Namespace, e.Ref.String())
	}
	_, err = f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
}

func TestFailedNamespaceSkipsItsObjects(t *testing.T) {
	f := newFixture(t)
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: "NS-UPPER"}}`)
	inside := f.configMap("c", "x")
	inside.SetNamespace(ns.GetName())
	_, err := f.apply(f.set(ns, inside))
	var all Errors
	require.ErrorAs(t, err, &all)
	assert.Equal(t, []Reason{ReasonInvalid, ReasonSkippedDependency}, []Reason{all[0].Reason, all[1].Reason})
	orphan := f.configMap("c", "x")
	orphan.SetNamespace("no-such-namespace")
	_, err = f.apply(f.set(orphan))
	assert.Equal(t, ReasonNotFound, ReasonOf(err))
	assert.True(t, strings.Contains(err.Error(), "create the Namespace no-such-namespace first"), err)
}
