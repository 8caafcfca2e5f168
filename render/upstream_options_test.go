// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/hack/testselection"
	"github.com/pergola-dev/pergola/schemas"
)

// optionsDir has Gardens, each with the changes that it makes to upstream's objects.
const optionsDir = "testdata/options"

// optionsGarden is a variation of the Garden in base.yaml.
type optionsGarden struct {
	name string
	// About describes the options.
	About        string                          `json:"about"`
	FeatureGates *landscapev1alpha1.FeatureGates `json:"featureGates"`
	// Change is a merge patch for the Garden of the base; Variant names one of our variants to
	// apply.
	Change  map[string]any `json:"change"`
	Variant string         `json:"variant"`
	// Objects are additional declarations.
	Objects []map[string]any `json:"objects"`
}

// optionsDifference is an intended difference from upstream in some Gardens; empty means all.
type optionsDifference struct {
	difference
	Gardens []string `json:"gardens"`
}

// TestUpstreamOptions compares the effect of options: the objects and fields that a Garden adds,
// removes or changes compared with a plain one. They equal those of upstream's constructors,
// recorded in testdata/options/*.upstream.yaml, or testdata/options.yaml lists the difference with
// its reason. TestCorpus covers differences that both Gardens have.
func TestUpstreamOptions(t *testing.T) {
	recordUpstreamOptions(t)
	var file struct {
		Differences []optionsDifference `json:"differences"`
	}
	readYAML(t, "testdata/options.yaml", &file)
	base := optionsGarden{name: "base"}.objects(t)
	gardens := optionsGardens(t)
	used, compared := make([]map[string]bool, len(file.Differences)), 0
	for _, g := range gardens {
		if !testselection.HasPart(t, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			compared++
			var want delta
			readYAML(t, filepath.Join(optionsDir, g.name+".upstream.yaml"), &want)
			var allowed []difference
			var at []int
			for i, d := range file.Differences {
				if len(d.Gardens) == 0 || slices.Contains(d.Gardens, g.name) {
					allowed, at = append(allowed, d.difference), append(at, i)
				}
			}
			usedHere := make([]bool, len(allowed))
			listed, unlisted := map[string]bool{}, map[string]bool{}
			var lines []string
			facts, differences := compareDeltas(want.facts(), deltaOf(base, g.objects(t)).facts())
			for _, d := range differences {
				if isAllowed(allowed, usedHere, d) {
					listed[d.object+d.path] = true
					continue
				}
				unlisted[d.object+d.path] = true
				lines = append(lines, d.String())
			}
			for i, is := range usedHere {
				if is {
					if used[at[i]] == nil {
						used[at[i]] = map[string]bool{}
					}
					used[at[i]][g.name] = true
				}
			}
			t.Logf("%s: of %d facts that are other than in the base, %d agree, %d differ as listed", g.name, facts, facts-len(listed)-len(unlisted), len(listed))
			if len(lines) > 0 {
				t.Errorf("%d differences from upstream:\n%s", len(lines), strings.Join(lines, "\n"))
			}
		})
	}
	if compared < len(gardens) {
		return // only some were selected
	}
	for i, d := range file.Differences {
		if strings.TrimSpace(d.Reason) == "" {
			t.Errorf("listed difference %s %s has no reason", d.Object, d.Path)
		}
		if len(used[i]) == 0 {
			t.Errorf("listed difference %s %s is none any more: take it off the list", d.Object, d.Path)
		}
		for _, name := range d.Gardens {
			if !used[i][name] {
				t.Errorf("listed difference %s %s is none any more in %s: take that off the list", d.Object, d.Path, name)
			}
		}
	}
}

// optionsGardens are the Gardens in the folder.
func optionsGardens(t *testing.T) []optionsGarden {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(optionsDir, "*.yaml"))
	require.NoError(t, err)
	var out []optionsGarden
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if garden, is := strings.CutSuffix(name, ".upstream"); is {
			require.FileExists(t, filepath.Join(optionsDir, garden+".yaml"), "a recording without its Garden")
		}
		if name == "base" || strings.HasSuffix(name, ".upstream") {
			continue
		}
		g := optionsGarden{name: name}
		readYAML(t, file, &g)
		require.NotEmpty(t, g.About, "%s does not say what it is about", file)
		out = append(out, g)
	}
	require.NotEmpty(t, out)
	return out
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(raw, into), file)
}

// declarations are the Garden and the declarations beside it.
func (g optionsGarden) declarations(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(optionsDir, "base.yaml"))
	require.NoError(t, err)
	if g.Variant != "" {
		raw = append(raw, "\n---\n"+g.variant(t).files["garden/objects.yaml"]...)
	}
	decoded, err := DecodeYAML("base.yaml", raw)
	require.NoError(t, err)
	var out []*unstructured.Unstructured
	for _, o := range decoded {
		if o.GetKind() == "Garden" {
			o.Object = mergePatched(o.Object, wholeNumbers(g.Change)).(map[string]any)
			if g.Variant != "" {
				for _, c := range g.variant(t).changes {
					if c.kind == "Garden" {
						c.apply(t, o.Unstructured)
					}
				}
			}
		}
		out = append(out, o.Unstructured)
	}
	for _, o := range g.Objects {
		out = append(out, &unstructured.Unstructured{Object: wholeNumbers(o).(map[string]any)})
	}
	return out
}

func (g optionsGarden) variant(t *testing.T) variant {
	t.Helper()
	i := slices.IndexFunc(variants, func(v variant) bool { return v.name == g.Variant })
	require.GreaterOrEqual(t, i, 0, "no variant %q", g.Variant)
	return variants[i]
}

// mergePatched is a value after a merge patch (RFC 7386).
func mergePatched(value, patch any) any {
	fields, is := patch.(map[string]any)
	if !is {
		return patch
	}
	old, _ := value.(map[string]any)
	out := maps.Clone(old)
	if out == nil {
		out = map[string]any{}
	}
	for key, change := range fields {
		if change == nil {
			delete(out, key)
		} else {
			out[key] = mergePatched(out[key], change)
		}
	}
	return out
}

// input is the input for the Garden: valid declarations, and the facts of the corpus.
func (g optionsGarden) input(t *testing.T) (Input, Options) {
	t.Helper()
	gates := g.FeatureGates
	if g.Variant != "" {
		gates = g.variant(t).gates
	}
	if gates == nil {
		gates = &landscapev1alpha1.FeatureGates{}
	}
	written, err := json.Marshal(gates)
	require.NoError(t, err)
	var text strings.Builder
	for _, o := range g.declarations(t) {
		raw, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		fmt.Fprintf(&text, "---\n%s", raw)
	}
	l := loadLandscape(t, map[string]string{
		"landscape.yaml":     landscapeFile(fmt.Sprintf("{gardenAPI: aggregated, featureGates: %s, clusters: {runtime: {context: any}}}", written)),
		"garden/garden.yaml": text.String(),
	})
	violations, err := l.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	require.False(t, schemas.HasErrors(violations), "the Garden has to be valid: %v", violations)
	options, err := LandscapeOptions(components.FS, l)
	require.NoError(t, err)
	inputs, err := Owners(l, WithCharts(someCharts(t)))
	require.NoError(t, err)
	require.Len(t, inputs, 1)
	in := inputs[0]
	in.Owner.UID = "00000000-0000-0000-0000-000000000000"
	in.Facts.Clusters = map[string]ClusterFact{"runtime": {KubernetesVersion: "1.34.1"}}
	in.Facts.Addresses = map[string]string{"virtual-garden-istio-ingress": "10.11.12.13"}
	for _, o := range g.declarations(t) {
		if o.GetLabels()[gardencorev1beta1.GardenRole] == gardencorev1beta1.GardenRoleGardenCert {
			in.Facts.WildcardCertificate = &WildcardCertificateFact{Name: o.GetName(), Checksum: strings.Repeat("0", 64)}
		}
	}
	return in, options
}

// objects are all rendered objects of the Garden.
func (g optionsGarden) objects(t *testing.T) map[string]any {
	t.Helper()
	in, options := g.input(t)
	res, err := Render(in, options)
	require.NoError(t, err)
	out := map[string]any{}
	for _, b := range res.Bundles {
		for _, o := range bundleObjects(t, b) {
			cluster := b.Cluster
			if o.GetKind() == "ManagedResource" {
				cluster = ClusterRuntime
			}
			out[optionsKey(cluster, o)] = factsOf(o)
		}
	}
	maps.Copy(out, encryptions(t, res))
	return out
}

// encryptions are the facts of the Secrets with the encryption of etcd: the secrets manager makes
// them from these requests.
func encryptions(t *testing.T, res Result) map[string]any {
	t.Helper()
	type request struct{ Kind, Key, Provider, Resources any }
	raw, err := res.Secrets()
	require.NoError(t, err)
	requests := map[string]request{}
	for name := range raw {
		var r request
		require.NoError(t, json.Unmarshal(raw[name], &r))
		requests[name] = r
	}
	out := map[string]any{}
	for name, r := range requests {
		if r.Kind == "etcdEncryptionConfiguration" {
			key, _ := r.Key.(string)
			out["Secret/garden/"+name+"-HASH"] = encryption(requests[key].Provider, r.Resources)
		}
	}
	require.Len(t, out, 2)
	return out
}

func encryption(provider, resources any) any {
	return canonicalValue(keyLists(map[string]any{"provider": provider, "resources": resources}, false))
}

// optionsKey is the key of the corpus; in the virtual garden it has a prefix.
func optionsKey(cluster string, o *unstructured.Unstructured) string {
	if cluster == ClusterVirtual {
		return "virtual " + corpusKey(o)
	}
	return corpusKey(o)
}
