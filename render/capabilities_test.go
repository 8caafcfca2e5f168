// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"testing/fstest"

	"cuelang.org/go/cue/cuecontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCapabilities: a chart sees the APIs of its target's API servers, not of clients.
func TestCapabilities(t *testing.T) {
	for api, want := range map[string]map[string]bool{
		"v1":                                               {"1.31": true, "1.36": true},
		"v1/Pod":                                           {"1.31": true, "1.36": true},
		"v1/PodList":                                       {"1.36": false},
		"v1/Deployment":                                    {"1.36": false},
		"apps/v1":                                          {"1.31": true, "1.36": true},
		"apps/v1/Deployment":                               {"1.31": true, "1.36": true},
		"apps/v1beta1":                                     {"1.36": false},
		"apps/v1beta2/Deployment":                          {"1.15": true, "1.16": false, "1.36": false},
		"extensions/v1beta1":                               {"1.21": true, "1.22": false, "1.36": false},
		"extensions/v1beta1/Ingress":                       {"1.21": true, "1.22": false},
		"policy/v1beta1":                                   {"1.24": true, "1.25": false, "1.36": false},
		"policy/v1beta1/PodSecurityPolicy":                 {"1.36": false},
		"policy/v1/PodDisruptionBudget":                    {"1.31": true, "1.36": true},
		"batch/v1beta1/CronJob":                            {"1.24": true, "1.25": false},
		"flowcontrol.apiserver.k8s.io/v1beta3":             {"1.31": true, "1.32": false},
		"flowcontrol.apiserver.k8s.io/v1":                  {"1.31": true, "1.36": true},
		"networking.k8s.io/v1/Ingress":                     {"1.31": true, "1.36": true},
		"networking.k8s.io/v1/ServiceCIDR":                 {"1.32": false, "1.33": true, "1.36": true},
		"networking.k8s.io/v1beta1":                        {"1.36": false},
		"resource.k8s.io/v1/DeviceClass":                   {"1.33": false, "1.34": true, "1.36": true},
		"resource.k8s.io/v1beta1":                          {"1.33": false, "1.36": false},
		"resource.k8s.io/v1alpha3":                         {"1.36": false},
		"storage.k8s.io/v1alpha1":                          {"1.31": false, "1.36": false},
		"certificates.k8s.io/v1alpha1":                     {"1.36": false},
		"apiextensions.k8s.io/v1beta1":                     {"1.21": true, "1.22": false, "1.36": false},
		"apiextensions.k8s.io/v1/CustomResourceDefinition": {"1.36": true},
		"apiregistration.k8s.io/v1":                        {"1.36": true},
		"apiregistration.k8s.io/v1/APIService":             {"1.36": true},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": {"1.29": false, "1.30": true, "1.36": true},
		"monitoring.coreos.com/v1":                                  {"1.36": false},
		"/__internal":                                               {"1.36": false},
	} {
		for version, has := range want {
			assert.Equal(t, has, capabilitiesOf("v"+version+".2").APIVersions.Has(api), "%s at %s", api, version)
		}
	}
	caps := capabilitiesOf("1.36.3-gke.1")
	assert.Equal(t, [3]string{"v1.36.3", "1", "36"}, [3]string{caps.KubeVersion.Version, caps.KubeVersion.Major, caps.KubeVersion.Minor})
	assert.Equal(t, capabilitiesOf(DefaultKubernetesVersion), capabilitiesOf("no version"))
	assert.True(t, chartutil.DefaultCapabilities.APIVersions.Has("extensions/v1beta1"), "Helm's own are those that clients know: they stay as they are")
}

// TestNumbersInValues: templates see numbers as in Helm, for any source of the values.
func TestNumbersInValues(t *testing.T) {
	const template = `apiVersion: v1
kind: ConfigMap
metadata: {name: numbers}
data:
  one: {{ kindOf .Values.one }}
  float: {{ kindOf .Values.float }}
  large: {{ .Values.large | quote }}
  whole: {{ .Values.large | int64 | quote }}
  beyond: {{ .Values.beyond | quote }}
  listed: {{ kindOf (index .Values.list 0) }}
  inner: {{ kindOf .Values.map.inner }}
  own: {{ kindOf .Values.own }}
  none: {{ kindOf .Values.none }}
  text: {{ kindOf .Values.text }}
`
	want := map[string]any{"one": "float64", "float": "float64", "large": "1.5e+07", "whole": "15000000", "beyond": "1.8446744073709552e+19",
		"listed": "float64", "inner": "float64", "own": "float64", "none": "invalid", "text": "string"}
	data := func(objects []Object, err error) map[string]any {
		require.NoError(t, err)
		require.Len(t, objects, 1)
		out, _, err := unstructured.NestedMap(objects[0].Object, "data")
		require.NoError(t, err)
		return out
	}
	const values = `{one: 1, float: 1.5, large: 15000000, beyond: 18446744073709551616, list: [1], map: inner: 2, own: 3, none: null, text: "1"}`
	source := cuecontext.New().CompileString(`{chart: "chart", release: "r", values: ` + values + `}`)
	require.NoError(t, source.Err())
	catalogue := fstest.MapFS{
		"c/chart/Chart.yaml":          {Data: []byte("apiVersion: v2\nname: watcher\nversion: 1.0.0\n")},
		"c/chart/values.yaml":         {Data: []byte("own: 1\n")},
		"c/chart/templates/some.yaml": {Data: []byte(template)},
	}
	assert.Equal(t, want, data(helmObjects(catalogue, "c", Input{}, bundleSpec{Cluster: ClusterRuntime}, source)), "of the catalogue")

	chart := testChart(t, template)
	live := map[string]any{"one": int64(1), "float": 1.5, "large": int64(15000000), "beyond": 18446744073709551616.0, "list": []any{int64(1)},
		"map": map[string]any{"inner": int64(2)}, "own": int64(3), "none": nil, "text": "1"}
	assert.Equal(t, want, data(chart.ObjectsOf(ChartReference{Repository: "r", Tag: "v"}, "r", "n", "1.36.0", live)), "of a registry")
	assert.Equal(t, int64(1), live["one"], "values stay as they are")
}
