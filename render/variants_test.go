// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// change sets a field of the declarations of a kind, or removes it (nil).
type change struct {
	kind, path string
	value      any
}

// variant is the demonstration landscape with changes.
type variant struct {
	name      string
	gardenAPI landscapev1alpha1.GardenAPI
	gates     *landscapev1alpha1.FeatureGates
	changes   []change
	// files are added to the landscape; external are existing objects.
	files    map[string]string
	external []landscapev1alpha1.ExternalObject
}

// variants are the most different forms of declarations.
var variants = []variant{
	{name: "local"},
	{name: "highly available", gardenAPI: landscapev1alpha1.GardenAPIAggregated, gates: &landscapev1alpha1.FeatureGates{VictoriaLogsBackend: ptr.To(true), DisableNginxIngressInGarden: ptr.To(false), DefaultSeccompProfile: ptr.To(true)}, changes: []change{
		{"Garden", "spec.virtualCluster.controlPlane", map[string]any{"highAvailability": map[string]any{}}},
		{"Garden", "spec.virtualCluster.kubernetes.version", "1.35.0"},
		{"Garden", "spec.runtimeCluster.settings.persistentVolumeClaimAutoscaler", map[string]any{"enabled": true}},
		{"Garden", "spec.virtualCluster.gardener.gardenerDiscoveryServer", map[string]any{}},
		{"Garden", "spec.virtualCluster.gardener.gardenerDashboard.terminal", map[string]any{"container": map[string]any{"image": "busybox:1.37"}}},
		{"Seed", "spec.provider.zones", []any{"0", "1", "2"}},
		{"Seed", "spec.backup", map[string]any{"provider": "local", "region": "local", "credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "backup-local", "namespace": "garden"}}},
		{"CloudProfile", "spec.regions", []any{map[string]any{"name": "local", "zones": []any{map[string]any{"name": "0"}, map[string]any{"name": "1"}, map[string]any{"name": "2"}}}}},
		{"Shoot", "spec.controlPlane", map[string]any{"highAvailability": map[string]any{"failureTolerance": map[string]any{"type": "zone"}}}},
		{"Shoot", "spec.provider.workers.zones", []any{"0", "1", "2"}},
		{"Shoot", "spec.provider.workers.maximum", int64(6)},
		{"Shoot", "spec.provider.workers.minimum", int64(3)},
	}},
	{name: "without workers and zones", changes: []change{
		{"Garden", "spec.virtualCluster.kubernetes.version", "1.32.0"},
		{"Garden", "spec.runtimeCluster.provider.zones", nil},
		{"Garden", "spec.virtualCluster.etcd.main.backup", nil},
		{"Seed", "spec.provider.zones", []any{"a"}},
		{"Shoot", "spec.provider.workers", nil},
		{"Shoot", "spec.networking", nil},
		{"Shoot", "spec.credentialsBindingName", nil},
		{"Shoot", "spec.kubernetes.kubelet", nil},
		{"Shoot", "spec.maintenance.autoUpdate.machineImageVersion", nil},
	}},
	{name: "without vertical autoscaling", changes: []change{
		{"Garden", "spec.runtimeCluster.settings.verticalPodAutoscaler.enabled", false},
		{"Seed", "spec.settings.verticalPodAutoscaler.enabled", false},
		{"Seed", "spec.settings.excessCapacityReservation", map[string]any{"enabled": true}},
	}},
	{name: "feature gates off", gates: &landscapev1alpha1.FeatureGates{
		IstioTLSTermination: ptr.To(false), BackupEntryForGarden: ptr.To(false), OpenTelemetryCollector: ptr.To(false), DisableNginxIngressInGarden: ptr.To(false),
	}},
	{name: "extensions", files: map[string]string{"extensions.yaml": variantExtensions}},
	everyOption,
	{name: "dual stack, two pools, hibernated", gates: &landscapev1alpha1.FeatureGates{IstioTLSTermination: ptr.To(false)}, changes: []change{
		{"Garden", "spec.virtualCluster.kubernetes.version", "1.33.0"},
		{"Garden", "spec.runtimeCluster.networking", map[string]any{
			"ipFamilies": []any{"IPv4", "IPv6"}, "nodes": []any{"172.18.0.0/24", "fd00:18::/64"}, "pods": []any{"10.1.0.0/16", "fd00:1::/56"}, "services": []any{"10.2.0.0/16", "fd00:2::/112"},
		}},
		{"Garden", "spec.virtualCluster.networking.services", []any{"100.64.0.0/13", "fd00:64::/112"}},
		{"Seed", "spec.networks.ipFamilies", []any{"IPv4", "IPv6"}},
		{"Shoot", "spec.networking.ipFamilies", []any{"IPv4", "IPv6"}},
		{"Shoot", "spec.networking.nodes", nil},
		{"Shoot", "spec.networking.pods", nil},
		{"Shoot", "spec.networking.services", nil},
		{"Shoot", "spec.hibernation", map[string]any{"enabled": true}},
		{"Shoot", "spec.provider.workers.name", "second"},
	}},
}

// variantResult is the render of a variant.
type variantResult struct {
	inputs  []Input
	results []Result
}

// bundles returns the bundles of all owners.
func (r variantResult) bundles() []Bundle {
	var out []Bundle
	for _, result := range r.results {
		out = append(out, result.Bundles...)
	}
	return out
}

// renderedVariants are shared by the tests, because rendering the whole catalogue takes most of the
// time.
var renderedVariants = map[string]func(*testing.T) variantResult{}

func init() {
	for _, v := range variants {
		var once sync.Once
		var result variantResult
		renderedVariants[v.name] = func(t *testing.T) variantResult {
			once.Do(func() { result = v.render(t) })
			require.NotEmpty(t, result.results, "rendering failed in the test that came first")
			return result
		}
	}
}

// eachVariant runs a test for every variant.
func eachVariant(t *testing.T, test func(*testing.T, variantResult)) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { test(t, renderedVariants[v.name](t)) })
	}
}

func (v variant) render(t *testing.T) variantResult {
	t.Helper()
	l := localLandscape(t)
	if v.files != nil {
		l = extendedLandscape(t, v.files)
	}
	l.Config.Spec.GardenAPI, l.Config.Spec.FeatureGates, l.Config.Spec.External = v.gardenAPI, v.gates, v.external
	for i := range l.Declarations {
		obj := l.Declarations[i].Object()
		for _, c := range v.changes {
			if c.kind == obj.GetKind() {
				c.apply(t, obj)
			}
		}
	}
	found, err := l.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	require.False(t, schemas.HasErrors(found), "a variant has to be valid: %v", found)
	options, err := LandscapeOptions(components.FS, l)
	require.NoError(t, err)
	inputs, err := Owners(l, WithCharts(someCharts(t)))
	require.NoError(t, err)
	require.Len(t, inputs, 3)
	out := variantResult{inputs: inputs}
	for _, in := range inputs {
		result, err := Render(in, options)
		require.NoError(t, err)
		out.results = append(out.results, result)
	}
	return out
}

func (c change) apply(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	const workers = "spec.provider.workers."
	if field, ok := strings.CutPrefix(c.path, workers); ok {
		list, _, err := unstructured.NestedSlice(obj.Object, "spec", "provider", "workers")
		require.NoError(t, err)
		if field == "name" {
			second := (&unstructured.Unstructured{Object: list[0].(map[string]any)}).DeepCopy().Object
			second["name"] = c.value
			list = append(list, second)
		} else {
			list[0].(map[string]any)[field] = c.value
		}
		require.NoError(t, unstructured.SetNestedSlice(obj.Object, list, "spec", "provider", "workers"))
		return
	}
	fields := strings.Split(c.path, ".")
	if c.value == nil {
		_, there, err := unstructured.NestedFieldNoCopy(obj.Object, fields...)
		require.NoError(t, err)
		require.True(t, there, "%s has no field %s to take away", obj.GetKind(), c.path)
		unstructured.RemoveNestedField(obj.Object, fields...)
		return
	}
	require.NoError(t, unstructured.SetNestedField(obj.Object, c.value, fields...))
}

// variantExtensions are used by the Garden at every possible time.
var variantExtensions = func() string {
	text := `
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: all}
spec:
  deployment:
    extension: {helm: {ociRepository: {ref: "registry.example.org/charts/all:v1"}}}
    admission:
      runtimeCluster: {helm: {ociRepository: {ref: "registry.example.org/charts/all:v1"}}}
      virtualCluster: {helm: {ociRepository: {ref: "registry.example.org/charts/all:v1"}}}
  resources:
`
	for _, kind := range []string{"BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord", "Infrastructure", "Network", "OperatingSystemConfig", "Worker"} {
		text += fmt.Sprintf("  - {kind: %s, type: local}\n", kind)
	}
	for _, reconcile := range []string{"BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker"} {
		for _, end := range []string{"BeforeKubeAPIServer", "AfterKubeAPIServer"} {
			text += fmt.Sprintf("  - {kind: Extension, type: %q, autoEnable: [garden], clusterCompatibility: [garden], lifecycle: {reconcile: %s, delete: %s}}\n",
				strings.ToLower(reconcile+"-"+end), reconcile, end)
		}
	}
	return text + "  - {kind: Network, type: calico}\n"
}()

// someCharts provides every chart that a test requests.
func someCharts(t *testing.T) func([]gardencorev1.OCIRepository) map[string]Chart {
	return func(wanted []gardencorev1.OCIRepository) map[string]Chart {
		out := map[string]Chart{}
		for _, w := range wanted {
			ref, err := ParseChartReference(w)
			require.NoError(t, err)
			chart, err := NewChart("sha256:"+strings.Repeat("0", 64), map[string][]byte{
				"Chart.yaml":          []byte("apiVersion: v2\nname: all\nversion: 1.0.0\n"),
				"templates/some.yaml": []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}\n"),
			})
			require.NoError(t, err)
			out[ref.String()] = chart
		}
		return out
	}
}

// extendedLandscape is the demonstration landscape with additional files.
func extendedLandscape(t *testing.T, files map[string]string) *landscapes.Landscape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "landscape")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../landscapes/local")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "golden")))
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return landscapeIn(t, dir)
}

// localLandscape loads the demonstration landscape, with its key.
func localLandscape(t *testing.T) *landscapes.Landscape {
	t.Helper()
	return landscapeIn(t, "../landscapes/local")
}

func landscapeIn(t *testing.T, dir string) *landscapes.Landscape {
	t.Helper()
	key, err := os.ReadFile("../landscapes/local/.sops/age.key")
	require.NoError(t, err)
	identities, err := landscapes.ParseAgeIdentities(string(key))
	require.NoError(t, err)
	l, violations, err := landscapes.Load(t.Context(), dir, landscapes.Options{AgeIdentities: identities})
	require.NoError(t, err)
	require.Empty(t, violations)
	return l
}

// describeObject names an object of a bundle in a failure.
func describeObject(b Bundle, o Object) string {
	return fmt.Sprintf("%s, %s %s at %s", b.ID(), o.GetKind(), o.GetName(), o.Origin)
}
