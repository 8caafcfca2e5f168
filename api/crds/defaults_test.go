package crds_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// setDefaults reports false for kinds whose defaults are in the schema only.
func setDefaults(object any) bool {
	switch o := object.(type) {
	case *operatorv1alpha1.Garden:
		operatorv1alpha1.SetDefaults_Garden(o)
	case *gardencorev1beta1.Seed:
		gardencorev1beta1.SetDefaults_Seed(o)
	case *gardencorev1beta1.Shoot:
		gardencorev1beta1.SetDefaults_Shoot(o)
	case *gardencorev1beta1.Project:
		gardencorev1beta1.SetDefaults_Project(o)
	case *gardencorev1beta1.CloudProfile:
		gardencorev1beta1.SetDefaults_CloudProfile(o)
	default:
		return false
	}
	return true
}

func toMap(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	content := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &content))
	return normalize(content).(map[string]any)
}

func fromMap(t *testing.T, kind schema.GroupVersionKind, content map[string]any) any {
	t.Helper()
	data, err := json.Marshal(content)
	require.NoError(t, err)
	object := typed(t, kind)
	require.NoError(t, json.Unmarshal(data, object))
	return object
}

// The schema's defaults and those of SetDefaults agree: whichever comes first, the result is that of SetDefaults.
func TestSchemaDefaultsAgree(t *testing.T) {
	dir := corpus.Dir(t)
	byKind := validators(t)
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*.yaml"))
	require.NoError(t, err)
	for _, sub := range []string{"example/*.yaml", "example/*/*.yaml", "dev-setup/*/*/*.yaml", "dev-setup/*/*/*/*/*.yaml"} {
		more, err := filepath.Glob(filepath.Join(dir, "valid", sub))
		require.NoError(t, err)
		files = append(files, more...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, doc := range documents(t, data) {
			first := typed(t, doc.kind)
			require.NoError(t, yaml.Unmarshal(doc.raw, first), file)
			if !setDefaults(first) {
				continue
			}
			want := toMap(t, first)

			// SetDefaults leaves nothing to the schema …
			got := runtime.DeepCopyJSON(want)
			byKind[doc.kind].prepare(got)
			assert.Equal(t, want, toMap(t, fromMap(t, doc.kind, got)), "%s: the schema defaults more", file)

			// … and does not mind what the schema has done.
			object := doc.object(t)
			byKind[doc.kind].prepare(object)
			second := fromMap(t, doc.kind, object)
			setDefaults(second)
			assert.Equal(t, want, toMap(t, second), "%s: the schema defaults otherwise", file)
		}
	}
}

// What upstream's API servers make of upstream's examples.
func TestUpstreamDefaults(t *testing.T) {
	dir := corpus.Dir(t)
	for _, test := range []struct {
		kind, input, recorded string
		nested                string
	}{
		{kind: "Garden", input: "garden-example.yaml", recorded: "garden/reconcile-flow/reconcile-example.yaml"},
		{kind: "Seed", input: "seed-example.yaml", recorded: "seed/reconcile-flow/reconcile-example.yaml"},
		{kind: "Shoot", input: "shoot-example.yaml", recorded: "shoot/reconcile-flow/reconcile-example.yaml"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			input := findDocument(t, filepath.Join(dir, "objects", "inputs", test.input), test.kind)
			recorded := findDocument(t, filepath.Join(dir, "objects", test.recorded), test.kind)
			got, want := typed(t, input.kind), typed(t, recorded.kind)
			require.NoError(t, yaml.UnmarshalStrict(input.raw, got))
			require.NoError(t, yaml.UnmarshalStrict(recorded.raw, want))
			setDefaults(got)
			assert.Equal(t, toMap(t, want)["spec"], toMap(t, got)["spec"])
		})
	}
}

func findDocument(t *testing.T, file, kind string) document {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, doc := range documents(t, data) {
		if doc.kind.Kind == kind {
			return doc
		}
	}
	require.Failf(t, "no such document", "%s in %s", kind, file)
	return document{}
}
