// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// applyDefaultPatch returns an object after the patch of /default.
func applyDefaultPatch(t *testing.T, h *Handler, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	response := requireResponse(t, h, PathDefault, newReview(t, admissionv1.Create, object, nil))
	require.True(t, response.Allowed)
	if len(response.Patch) == 0 {
		return object
	}
	require.Equal(t, admissionv1.PatchTypeJSONPatch, *response.PatchType)
	var patch []patchOperation
	require.NoError(t, json.Unmarshal(response.Patch, &patch))
	result := object.DeepCopy()
	for _, op := range patch {
		require.Equal(t, "add", op.Op)
		for _, step := range strings.Split(op.Path, "/")[1:] {
			op.steps = append(op.steps, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
		op.applyTo(result.Object)
	}
	return decodeObject(t, string(encodeJSON(t, result)))
}

// TestDefaultsOnlyAdd: fields that were sent stay, the result equals the Go defaults, and a second
// call adds nothing. Incomplete objects behave the same.
func TestDefaultsOnlyAdd(t *testing.T) {
	h := newHandler(t, Options{})
	objects := []*unstructured.Unstructured{}
	for _, kind := range []string{"Garden", "Seed", "Shoot", "Project", "CloudProfile", "ExposureClass", "extensions.Worker"} {
		objects = append(objects, validObject(t, kind), mergeYAML(t, validObject(t, kind), `spec: null`), mergeYAML(t, validObject(t, kind), `spec: {}`))
	}
	objects = append(objects,
		mergeYAML(t, validObject(t, "Shoot"), `{metadata: {namespace: garden}, spec: {tolerations: [{key: a/b}], provider: {workers: [{name: a, machine: {type: b}}, {name: c, unknown: {d: e}}]}}}`),
		mergeYAML(t, validObject(t, "Shoot"), `spec: {purpose: "", networking: null, maintenance: {autoUpdate: null}}`),
		mergeYAML(t, validObject(t, "CloudProfile"), `spec: {machineImages: [{name: a, versions: [{version: 1.0.0, cri: []}]}], machineTypes: [{name: a}]}`),
		mergeYAML(t, validObject(t, "Project"), `spec: {members: [{kind: User, name: a, apiGroup: "", role: ""}, {kind: ServiceAccount, name: b, namespace: c, role: admin}]}`))
	for _, object := range objects {
		t.Run(object.GetKind(), func(t *testing.T) {
			full := applyDefaultPatch(t, h, object)
			assertValuesStay(t, "", object.Object, full.Object)
			assert.Equal(t, full.Object, applyDefaultPatch(t, h, full).Object)
			assert.Equal(t, full.Object, h.defaults.withDefaults(object).Object)
			if !h.defaults.kinds[object.GroupVersionKind()] {
				assert.Equal(t, object, full)
				return
			}
			assert.JSONEq(t, goDefaults(t, h, object), encodeAsGoType(t, h, full))
		})
	}
}

// goDefaults returns the object with the defaults of its Go type, as the type encodes it.
func goDefaults(t *testing.T, h *Handler, object *unstructured.Unstructured) string {
	t.Helper()
	typed, err := h.defaults.scheme.New(object.GroupVersionKind())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(encodeJSON(t, object), typed))
	h.defaults.scheme.Default(typed)
	return string(encodeJSON(t, typed))
}

func encodeAsGoType(t *testing.T, h *Handler, object *unstructured.Unstructured) string {
	t.Helper()
	typed, err := h.defaults.scheme.New(object.GroupVersionKind())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(encodeJSON(t, object), typed))
	return string(encodeJSON(t, typed))
}

// assertValuesStay asserts that all values stay; an empty value may be filled.
func assertValuesStay(t *testing.T, path string, before, after any) {
	t.Helper()
	if isEmpty(before) {
		return
	}
	switch before := before.(type) {
	case map[string]any:
		filled, ok := after.(map[string]any)
		require.True(t, ok, path)
		for name, value := range before {
			assertValuesStay(t, path+"."+name, value, filled[name])
		}
	case []any:
		filled, ok := after.([]any)
		require.True(t, ok, path)
		require.GreaterOrEqual(t, len(filled), len(before), path)
		for i, value := range before {
			assertValuesStay(t, path+"[]", value, filled[i])
		}
	default:
		assert.Equal(t, before, after, path)
	}
}

// TestDefaultsOfTheCorpus checks the same for upstream's own objects.
func TestDefaultsOfTheCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "cases", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	h := newHandler(t, Options{})
	for _, file := range files {
		for _, object := range decodeManifest(t, readFile(t, file)) {
			object.SetDeletionTimestamp(nil)
			full := applyDefaultPatch(t, h, object)
			assertValuesStay(t, filepath.Base(file), object.Object, full.Object)
			if h.defaults.kinds[object.GroupVersionKind()] {
				assert.JSONEq(t, goDefaults(t, h, object), encodeAsGoType(t, h, full), file)
			}
		}
	}
}

// TestMalformedObjectHasNoDefaults: validation reports malformed objects.
func TestMalformedObjectHasNoDefaults(t *testing.T) {
	object := mergeYAML(t, validObject(t, "Shoot"), `spec: {provider: 5}`)
	assert.Empty(t, requireResponse(t, newHandler(t, Options{}), PathDefault, newReview(t, admissionv1.Create, object, nil)).Patch)
}
