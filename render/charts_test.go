// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

func testChart(t *testing.T, template string) Chart {
	t.Helper()
	c, err := NewChart("sha256:1", map[string][]byte{
		"Chart.yaml": []byte("apiVersion: v2\nname: watcher\nversion: 1.0.0\n"), "values.yaml": []byte("a: b\n"), "templates/some.yaml": []byte(template),
	})
	require.NoError(t, err)
	return c
}

func TestRegistryChart(t *testing.T) {
	const ref = "registry.example.org/charts/watcher:v1"
	src := helmSource{
		OCI: &gardencorev1.OCIRepository{Ref: ptr.To("oci://" + ref)}, Release: "watcher", Namespace: "runtime-extension-watcher",
		Values:    map[string]any{"gardener": map[string]any{"own": "x", "runtimeCluster": map[string]any{"priorityClassName": "mine"}}},
		Overrides: map[string]any{"gardener": map[string]any{"runtimeCluster": map[string]any{"priorityClassName": "theirs"}}},
	}
	render := func(c *Chart) ([]Object, error) {
		in := Input{Owner: Owner{Kind: "garden"}}
		if c != nil {
			in.Charts = map[string]Chart{ref: *c}
		}
		return registryChartObjects(in, bundleSpec{Cluster: ClusterRuntime}, src, emptyCUE)
	}
	const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-{{ .Values.a }}
spec:
  template:
    spec:
      priorityClassName: {{ .Values.gardener.runtimeCluster.priorityClassName }}{{ .Values.gardener.own }}{{ .Values.none }}
      containers: [{name: c}]
`
	c := testChart(t, deployment)
	objects, err := render(&c)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	assert.Equal(t, "watcher-b", objects[0].GetName())
	assert.Equal(t, "runtime-extension-watcher", objects[0].GetNamespace())
	assert.Equal(t, ref+"/templates/some.yaml", objects[0].Origin.String())
	class, _, _ := unstructured.NestedString(objects[0].Object, "spec", "template", "spec", "priorityClassName")
	assert.Equal(t, "theirsx", class, "what Gardener says goes before the values of the user")

	src.GardenKubeconfig = &gardenKubeconfig{Generic: "generic", Access: "shoot-access-a"}
	objects, err = render(&c)
	require.NoError(t, err)
	spec := podSpecs(objects[0].Unstructured)[0]
	container := containersOf(spec)[0]
	assert.Equal(t, []any{map[string]any{"name": "GARDEN_KUBECONFIG", "value": "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig"}}, container["env"])
	assert.Len(t, container["volumeMounts"], 1)
	assert.Len(t, spec["volumes"], 1)
	assert.Equal(t, "true", objects[0].GetAnnotations()[MarkReferences])
	src.GardenKubeconfig = nil

	for name, test := range map[string]struct {
		chart *Chart
		want  string
	}{
		"nobody was asked": {nil, "chart " + ref},
		"not to be had":    {&Chart{Problem: "no such chart"}, "no such chart"},
		"a clock":          {ptr.To(testChart(t, "a: {{ now }}")), "function now depends on the clock"},
		"a mistake":        {ptr.To(testChart(t, "a: {{ fail \"not so\" }}")), "not so"},
		"no object":        {ptr.To(testChart(t, "a: b")), "apiVersion and kind are required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(test.chart)
			var problem *chartError
			require.ErrorAs(t, err, &problem)
			assert.Contains(t, problem.text, test.want)
			assert.Equal(t, test.chart == nil, problem.notRequested)
		})
	}
	src.Values = map[string]any{"password": "{{ .resources.login.data.password }}"}
	_, err = render(&c)
	assert.ErrorContains(t, err, "spec.deployment.resources")
}

var emptyCUE cue.Value

func hexOf(s string) string { return strings.Repeat(s, 64) }

func TestChartReferences(t *testing.T) {
	for want, named := range map[string]gardencorev1.OCIRepository{
		"registry.example.org/a/b:v1":                 {Ref: ptr.To("registry.example.org/a/b:v1")},
		"registry.example.org:5000/a:v1":              {Repository: ptr.To("oci://registry.example.org:5000/a"), Tag: ptr.To("v1")},
		"registry.example.org/a@sha256:" + hexOf("a"): {Repository: ptr.To("registry.example.org/a"), Tag: ptr.To("v1"), Digest: ptr.To("sha256:" + hexOf("a"))},
	} {
		got, err := ParseChartReference(named)
		require.NoError(t, err)
		assert.Equal(t, want, got.String())
	}
	for _, wrong := range []gardencorev1.OCIRepository{{}, {Ref: ptr.To("registry.example.org/a")}, {Ref: ptr.To("a b:c")}, {Repository: ptr.To("registry.example.org/a")}} {
		_, err := ParseChartReference(wrong)
		assert.Error(t, err)
	}
}
