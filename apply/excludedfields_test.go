// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const leftoverDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: NS}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:1"}], volumes: [{name: v}]}}}}`

// TestExcludedDefaultsAreRemoved: a declaration removes the server's defaults that it excludes, in
// one change, as the dry run shows.
func TestExcludedDefaultsAreRemoved(t *testing.T) {
	const changed = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: NS, labels: {new: x}}, spec: {replicas: 0, strategy: {type: Recreate}, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:2"}], volumes: [{name: v, configMap: {name: c}}]}}}}`
	f := newFixture(t)
	first := f.object(leftoverDeployment)
	f.mustApply(f.set(first))
	before := f.get(first)
	require.NotNil(t, nested(before, "spec", "strategy", "rollingUpdate"))

	wish := f.object(changed)
	foreseen, err := f.e.Plan(f.ctx, f.c, f.set(wish), f.inv, ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, foreseen.Items, 1)
	var paths []string
	for _, field := range foreseen.Items[0].Fields {
		paths = append(paths, field.Path)
	}
	assert.Equal(t, []string{"metadata.labels.new", "spec.strategy.rollingUpdate", "spec.strategy.type",
		"spec.template.spec.containers[name=a].image", "spec.template.spec.volumes[name=v].configMap", "spec.template.spec.volumes[name=v].emptyDir"}, paths)
	assert.Equal(t, before.GetResourceVersion(), f.get(first).GetResourceVersion(), "a dry run writes nothing")

	assert.Equal(t, Configured, f.mustApply(f.set(wish)).Objects[0].Action)
	after := f.get(first)
	assert.Equal(t, map[string]any{"type": "Recreate"}, nested(after, "spec", "strategy"))
	volumes, _, _ := unstructured.NestedSlice(after.Object, "spec", "template", "spec", "volumes")
	assert.Equal(t, []any{map[string]any{"name": "v", "configMap": map[string]any{"name": "c", "defaultMode": int64(420)}}}, volumes)
	assert.Equal(t, before.GetGeneration()+1, after.GetGeneration(), "its pods roll once")
	f.requests(func() {
		assert.Equal(t, Unchanged, f.mustApply(f.set(wish)).Objects[0].Action)
	})
}

// TestExcludedFieldsOfOthersStay: a value that someone set stays, and the server's refusal is
// reported.
func TestExcludedFieldsOfOthersStay(t *testing.T) {
	f := newFixture(t)
	first := f.object(leftoverDeployment)
	f.mustApply(f.set(first))
	f.patch(first, f.other, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}}}}`)
	before := f.get(first)

	wish := first.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(wish.Object, "Recreate", "spec", "strategy", "type"))
	result, err := f.apply(f.set(wish))
	require.Error(t, err)
	assert.Equal(t, ReasonInvalid, result.Objects[0].Err.Reason)
	assert.Equal(t, before.GetResourceVersion(), f.get(first).GetResourceVersion())
}

// TestInvalidObjectKeepsExcludedDefaults: an object that is invalid for another reason stays as it
// is.
func TestInvalidObjectKeepsExcludedDefaults(t *testing.T) {
	f := newFixture(t)
	first := f.object(leftoverDeployment)
	f.mustApply(f.set(first))
	before := f.get(first)
	wish := first.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(wish.Object, "no name", "spec", "template", "spec", "serviceAccountName"))
	_, err := f.apply(f.set(wish))
	require.Error(t, err)
	assert.Equal(t, before.GetResourceVersion(), f.get(first).GetResourceVersion())
}

// TestEmptiedMapsStayEmpty: if only an empty map is still declared, its fields are removed and the
// map stays, with the server's defaults, as the plan shows. Server-side apply alone would leave
// null, which the definition rejects.
func TestEmptiedMapsStayEmpty(t *testing.T) {
	for name, before := range map[string]func(*fixture, *unstructured.Unstructured){
		"of ours":           func(f *fixture, o *unstructured.Unstructured) { f.mustApply(f.set(o)) },
		"of former writers": func(f *fixture, o *unstructured.Unstructured) { f.createBy("gardener-operator", o) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			definition := f.widgets()
			version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
			part := map[string]any{"type": "object", "properties": map[string]any{"inner": map[string]any{"type": "object", "properties": map[string]any{"level": map[string]any{"type": "string"}}}, "mode": map[string]any{"type": "string", "default": "usual"}}}
			require.NoError(t, unstructured.SetNestedField(version, part, "schema", "openAPIV3Schema", "properties", "spec", "properties", "part"))
			result, err := f.e.Apply(f.ctx, f.c, Set{Name: "definitions", FieldManager: "definitions", Objects: []*unstructured.Unstructured{definition}}, NewMemoryInventory(), ApplyOptions{})
			require.NoError(t, err)
			require.Equal(t, 1, result.Count(Created))
			first := f.widget("w")
			// The set has no object of the kind, so nothing waited until it is served, a moment
			// after it is established.
			f.eventually("widgets are served", func() bool {
				f.c.ResetMapping()
				_, err := f.c.Mapping(f.ctx, first.GroupVersionKind())
				return err == nil
			})
			require.NoError(t, unstructured.SetNestedField(first.Object, "info", "spec", "part", "inner", "level"))
			require.NoError(t, unstructured.SetNestedField(first.Object, "usual", "spec", "part", "mode"))
			before(f, first)

			wish := f.widget("w")
			require.NoError(t, unstructured.SetNestedField(wish.Object, int64(2), "spec", "size"))
			require.NoError(t, unstructured.SetNestedField(wish.Object, map[string]any{}, "spec", "part"))
			item, err := f.planOne(f.set(wish))
			require.NoError(t, err)
			var paths []string
			for _, field := range item.Fields {
				if strings.HasPrefix(field.Path, "spec.") {
					paths = append(paths, field.Path)
				}
			}
			assert.Equal(t, []string{"spec.part.inner", "spec.size"}, paths)
			f.mustApply(f.set(wish))
			assert.Equal(t, map[string]any{"size": int64(2), "part": map[string]any{"mode": "usual"}}, f.get(wish).Object["spec"])
			f.requests(func() {
				assert.Equal(t, Unchanged, f.mustApply(f.set(wish)).Objects[0].Action)
			})
		})
	}
}
