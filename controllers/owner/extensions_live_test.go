// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/render"
)

// chartWithAllInputs writes all values and target properties that a template can read.
const chartWithAllInputs = `apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  values: {{ .Values | toJson | quote }}
  kinds: {{ printf "%s %s %s %s" (kindOf .Values.one) (kindOf .Values.deep.two) (kindOf .Values.none) (kindOf (index .Values.list 1)) | quote }}
  large: {{ .Values.large | quote }}
  defaulted: {{ .Values.default | default "none" | quote }}
  nested: {{ .Values.nested.gone | default "none" | quote }}
  capabilities: {{ printf "%t %t %t" (.Capabilities.APIVersions.Has "apps/v1/Deployment") (.Capabilities.APIVersions.Has "extensions/v1beta1") (.Capabilities.APIVersions.Has "policy/v1beta1") | quote }}
`

// TestLiveExtensionRendersLikeDeclared checks that the chart of an Extension renders the same
// objects for its declaration in Git and for the live object.
func TestLiveExtensionRendersLikeDeclared(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	home, err := conventions.NewCluster("home", server.config, apply.ClusterOptions{})
	require.NoError(t, err)
	defer home.Close()
	gvk := operatorv1alpha1.SchemeGroupVersion.WithKind(render.KindExtension.Kind)
	definition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crds.Get(gvk.Group, gvk.Kind))
	require.NoError(t, err)
	crd := &unstructured.Unstructured{Object: definition}

	declared := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: renders-alike, annotations: {security.gardener.cloud/pod-security-enforce: privileged}}
spec:
  resources: [{kind: Extension, type: renders-alike, autoEnable: null}]
  deployment:
    extension:
      injectGardenKubeconfig: null
      helm: {ociRepository: {ref: "registry.example.org/charts/all:v1"}}
      values: &values {one: 1, float: 1.0, deep: {two: 2, gone: null}, none: null, default: null, nested: {gone: null}, list: [null, 3, {x: null, z: 4}], large: 15000000, empty: {}, text: "1", never: false}
      runtimeClusterValues: *values
    admission:
      values: *values
      runtimeCluster: {helm: {ociRepository: {ref: "registry.example.org/charts/all:v1"}}}
`), &declared.Object))
	engine := conventions.NewEngine(apply.Options{})
	set := apply.Set{Name: "extensions-live", FieldManager: "pergola", Objects: []*unstructured.Unstructured{crd, declared}}
	inventory := apply.NewConfigMapInventory(home, "default", "extensions-live", nil)
	_, err = engine.Apply(ctx, home, set, inventory, apply.ApplyOptions{})
	require.NoError(t, err)
	defer func() {
		_, err := engine.Delete(ctx, home, set, inventory, apply.DeleteOptions{})
		assert.NoError(t, err)
	}()
	all, err := listAllObjects(ctx, home, gvk)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Empty(t, all[0].GetDeletionTimestamp())

	chart, err := render.NewChart("sha256:1", map[string][]byte{
		"Chart.yaml":          []byte("apiVersion: v2\nname: all\nversion: 1.0.0\n"),
		"values.yaml":         []byte("default: there\nnone: there\nnested: {gone: there, stays: there}\ndeep: {gone: there, stays: there}\n"),
		"templates/seen.yaml": []byte(chartWithAllInputs),
	})
	require.NoError(t, err)
	git, live := render.ExtensionOf(declared), render.ExtensionOf(all[0])
	assert.Equal(t, git.Annotations, live.Annotations)
	for _, path := range [][]string{{"deployment", "extension", "values"}, {"deployment", "extension", "runtimeClusterValues"}, {"deployment", "admission", "values"}} {
		var seen []map[string]any
		for _, e := range []render.Extension{git, live} {
			values, found, err := unstructured.NestedMap(e.Spec, path...)
			require.NoError(t, err)
			require.True(t, found)
			objects, err := chart.ObjectsOf(render.ChartReference{Repository: "registry.example.org/charts/all", Tag: "v1"}, "all", metav1.NamespaceDefault, "1.36.0", values)
			require.NoError(t, err)
			data, _, err := unstructured.NestedMap(objects[0].Object, "data")
			require.NoError(t, err)
			seen = append(seen, data)
		}
		assert.Equal(t, seen[0], seen[1], "%v", path)
		assert.Equal(t, map[string]any{
			"values":       `{"deep":{"stays":"there","two":2},"empty":{},"float":1,"large":15000000,"list":[null,3,{"x":null,"z":4}],"nested":{"stays":"there"},"never":false,"one":1,"text":"1"}`,
			"kinds":        "float64 float64 invalid float64",
			"large":        "1.5e+07",
			"defaulted":    "none",
			"nested":       "none",
			"capabilities": "true false false",
		}, seen[1])
	}
}
