// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

const (
	gardenYAML  = "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: main}\nspec: {virtualCluster: {kubernetes: {version: 1.34.1}}}\n"
	seedYAML    = "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: eu}\nspec: {provider: {type: local, region: local}}\n"
	projectYAML = "apiVersion: core.gardener.cloud/v1beta1\nkind: Project\nmetadata: {name: dev}\nspec: {namespace: garden-dev}\n"
)

func shootYAML(name, namespace, rest string) string {
	return "# a shoot\napiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {kubernetes: {version: 1.33.5}, provider: {type: local}" + rest + "}\n"
}

func TestOwners(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("{facts: facts.yaml}"),
		"g.yaml":         gardenYAML, "s.yaml": seedYAML, "p.yaml": projectYAML,
		"profile.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}\nspec: {type: local}\n",
		"a.yaml":       shootYAML("a", "garden-dev", ", seedName: eu, cloudProfile: {kind: CloudProfile, name: local}"),
		"unbound.yaml": shootYAML("unbound", "garden-dev", ""),
		"facts.yaml":   "shoot garden-dev/a: {clusters: {seed: {kubernetesVersion: 1.33.1}}, addresses: {kube-apiserver: 10.0.0.1}}\n",
	})
	inputs, err := Owners(l)
	require.NoError(t, err)
	var got []string
	for _, in := range inputs {
		got = append(got, in.Owner.String()+" in "+in.Owner.ControlPlaneNamespace+" sees "+joinNames(sortedKeys(in.Objects))+" serves "+in.TargetVersion)
	}
	assert.Equal(t, []string{
		"garden main in garden sees garden serves 1.34.1",
		"seed eu in garden sees garden seed serves ",
		"shoot garden-dev/a in shoot--dev--a sees cloudProfile garden project seed shoot serves 1.33.5",
	}, got, "a Shoot without a seed waits for the scheduler")
	assert.Equal(t, "10.0.0.1", inputs[2].Facts.Addresses["kube-apiserver"])
	assert.Empty(t, inputs[0].Facts)
	defaulted, _, _ := nestedField(inputs[1].Objects["seed"], "spec", "settings")
	assert.NotNil(t, defaulted, "API defaults are applied")

	seeds, err := SeedsOfShoots(l)
	require.NoError(t, err)
	clusterOf := ClusterNamer(seeds)
	assert.Equal(t, "eu", clusterOf(Bundle{Cluster: ClusterSeed, Owner: inputs[2].Owner}))
	assert.Equal(t, "eu", clusterOf(Bundle{Cluster: ClusterSeed, Owner: inputs[1].Owner}))
	assert.Equal(t, "shoot garden-dev/a", clusterOf(Bundle{Cluster: ClusterShoot, Owner: inputs[2].Owner}), "each Shoot has objects of the same names")
	assert.Equal(t, "runtime", clusterOf(Bundle{Cluster: ClusterRuntime, Owner: inputs[0].Owner}))
}

func joinNames(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += " "
		}
		out += n
	}
	return out
}

func nestedField(m map[string]any, fields ...string) (any, bool, error) {
	var v any = m
	for _, f := range fields {
		next, ok := v.(map[string]any)
		if !ok {
			return nil, false, nil
		}
		v = next[f]
	}
	return v, v != nil, nil
}

// TestOwnersErrors: all missing objects are reported at once, each with file and line of the Shoot.
func TestOwnersErrors(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("{}"), "s.yaml": seedYAML, "p.yaml": projectYAML,
		"a.yaml": shootYAML("a", "garden-dev", ", seedName: us"), "b.yaml": shootYAML("b", "garden-other", ", seedName: eu"),
	})
	_, err := Owners(l)
	require.EqualError(t, err, `a.yaml:5:74: Shoot garden-dev/a: spec.seedName: no Seed "us" in this landscape`+"\n"+
		`b.yaml:4:32: Shoot garden-other/b: metadata.namespace: no Project in this landscape has spec.namespace "garden-other"`)
}

func TestRecordedFactsErrors(t *testing.T) {
	const recorded = "facts.txt"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"missing":       {"", []string{`landscape.yaml:5:15: spec.facts: the file "facts.txt" cannot be read`}},
		"no YAML":       {"garden main:\n  secrets: [\n", []string{"facts.txt:2:12: this is not YAML: the bracket ["}},
		"a tab":         {"garden main:\n\tsecrets: {}\n", []string{"facts.txt:2:1: a tab indents the line"}},
		"two documents": {"{}\n---\ngarden main: {}\n", []string{"facts.txt:3:1: the file must hold one document"}},
		"unknown fields": {"garden main:\n  secret: {}\n  secrets: {ca: {nam: x}}\n", []string{
			`facts.txt:2:3: [garden main].secret: the field "secret" does not exist; did you mean "secrets"?`,
			`facts.txt:3:18: [garden main].secrets[ca].nam: the field "nam" does not exist; did you mean "name"?`,
		}},
		"wrong types": {"garden main:\n  addresses: [a]\n  secrets: {ca: {name: 7}}\n  clusters: {runtime: {identity: yes}}\n", []string{
			"facts.txt:2:14: [garden main].addresses: must be an object with fields",
			"facts.txt:3:24: [garden main].secrets[ca].name: must be text",
			"facts.txt:4:34: [garden main].clusters[runtime].identity: must be text",
		}},
		"twice": {"garden main: {}\ngarden main: {}\n", []string{"facts.txt:2:1: [garden main]: the field is written twice"}},
		"unknown owners": {"garden mian: {}\nshoot a: {}\n", []string{
			`facts.txt:1:1: [garden mian]: there is no garden mian in this landscape; did you mean "garden main"?`,
			"facts.txt:2:1: [shoot a]: there is no shoot a in this landscape, which has garden main",
		}},
		"clusters": {"garden main: {clusters: {moon: {}, runtime: {kubernetesVersion: new}}}\n", []string{
			"facts.txt:1:26: [garden main].clusters[moon]: this is not a cluster role; the roles are runtime, virtual, seed, shoot",
			`facts.txt:1:46: [garden main].clusters[runtime].kubernetesVersion: "new" is not a Kubernetes version such as `,
		}},
		"addresses": {"garden main: {addresses: {virtual-garden-istio-ingres: 10.0.0.1, gardener-apiserver: 10.0.0.256, virtual-garden-istio-ingress: lb.example.org, terminal-host: a}}\n", []string{
			`facts.txt:1:66: [garden main].addresses[gardener-apiserver]: "10.0.0.256" is neither an IP address nor a host name`,
			`facts.txt:1:27: [garden main].addresses[virtual-garden-istio-ingres]: no component of a garden asks for this address; did you mean "virtual-garden-istio-ingress"?`,
		}},
		"extensions and references": {"garden main: {extensions: {workr/a: {}, backupbucket/b: {}}, references: {secret/c: {checksum: d}, Secret/e: {checksum: f}}}\n", []string{
			"facts.txt:1:28: [garden main].extensions[workr/a]: it must be a kind in small letters and a name, such as worker/NAME; kinds are ",
			"facts.txt:1:75: [garden main].references[secret/c]: it must be a kind and a name: ConfigMap/NAME or Secret/NAME",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"landscape.yaml": landscapeFile("{facts: facts.txt}"), "g.yaml": gardenYAML}
			if test.text != "" {
				files[recorded] = test.text
			}
			l := loadLandscape(t, files)
			_, err := Owners(l)
			require.Error(t, err)
			violations := CheckLandscape(smallCatalogue(t, nil), l)
			assert.Len(t, violations, len(test.want), "%v", violations)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			for _, v := range violations {
				assert.Equal(t, "landscape/facts", v.Rule)
			}
		})
	}
}

// TestSeedNames: paths and --kubeconfig identify clusters by name.
func TestSeedNames(t *testing.T) {
	for _, name := range []string{"runtime", "virtual"} {
		l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("{}"), "s.yaml": strings.Replace(seedYAML, "name: eu", "name: "+name, 1)})
		_, err := LandscapeOptions(smallCatalogue(t, nil), l)
		require.ErrorContains(t, err, "s.yaml:3:18: error: Seed "+name+": metadata.name: a Seed cannot be named "+name+": ")
	}
}

// TestCheckLandscapeOfInvalidObjects: landscapes with other faults do not make it fail.
func TestCheckLandscapeOfInvalidObjects(t *testing.T) {
	empty := func(api, kind string) string {
		return "---\napiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: x, namespace: ns}\n"
	}
	const core, operator = "core.gardener.cloud/v1beta1", "operator.gardener.cloud/v1alpha1"
	all := empty(operator, "Garden") + empty(core, "Seed") + empty(core, "Shoot") + empty(core, "Project") + empty(core, "CloudProfile")
	for name, text := range map[string]string{
		"nothing but names": all,
		"null":              strings.ReplaceAll(all, "kind: ", "spec: null\nkind: "),
		"another type":      strings.ReplaceAll(all, "kind: ", "spec: 7\nkind: "),
		"empty spec":        strings.ReplaceAll(all, "kind: ", "spec: {provider: {workers: [{}]}, kubernetes: null, virtualCluster: {}, seedName: x, dns: {}}\nkind: "),
	} {
		t.Run(name, func(t *testing.T) {
			l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("{}"), "all.yaml": text, "components/garden/vpa/kustomization.yaml": "commonAnnotations: {x: a}\n"})
			assert.NotPanics(t, func() {
				CheckLandscape(components.FS, l)
				Partial(l, components.FS)
			})
		})
	}
}

func TestLandscapeOptions(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("{components: {garden: {app: {enabled: false}}}, images: [{name: app, tag: v9, version: '>= 1.33'}]}"),
		"components/garden/app/kustomization.yaml": "patches: []\n",
	})
	o, err := LandscapeOptions(smallCatalogue(t, map[string]string{"garden/app/component.cue": ""}), l)
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{"garden/app": false}, o.Enabled)
	assert.Equal(t, []Image{{Name: "app", Tag: "v9", TargetVersion: ">= 1.33"}}, o.ImageOverrides)
	require.Len(t, o.Overlays, 1)
	assert.Equal(t, "garden/app", o.Overlays[0].Component)
	assert.Equal(t, "components/garden/app", o.Overlays[0].Name)
}

// TestUnknownComponents: unknown names are probably misspelt, so nothing is rendered.
func TestUnknownComponents(t *testing.T) {
	catalogue := smallCatalogue(t, map[string]string{
		"garden/app/component.cue": "", "garden/etcd-druid/component.cue": "", "seed/system/component.cue": "", "seed/etcd-druid/component.cue": "", "shoot/worker/component.cue": "",
	})
	for _, test := range []struct{ owner, name, want string }{
		{"garden", "ap", "; did you mean garden/app?"},
		{"garden", "App", "; did you mean garden/app?"},
		{"garden", "etcd-druids", "; did you mean garden/etcd-druid?"},
		{"garden", "etcd_druid", "; did you mean garden/etcd-druid?"},
		{"seed", "sytem", "; did you mean seed/system?"},
		{"seed", "app", "; did you mean garden/app?"},
		{"shoot", "etcd-druid", "; did you mean garden/etcd-druid?"},
		{"garden", "worker", "; did you mean shoot/worker?"},
		{"shoot", "prometheus", "; components of a shoot are worker"},
		{"garden", "prometheus", "; components of a garden are app, etcd-druid"},
	} {
		t.Run(test.owner+"/"+test.name, func(t *testing.T) {
			l := loadLandscape(t, map[string]string{
				"landscape.yaml": landscapeFile(fmt.Sprintf("\n  components:\n    %s:\n      %s: {enabled: false}", test.owner, test.name)),
				fmt.Sprintf("components/%s/%s/kustomization.yaml", test.owner, test.name): "patches: []\n",
			})
			wrong := fmt.Sprintf("no component %s/%s in the catalogue%s ", test.owner, test.name, test.want)
			_, err := LandscapeOptions(catalogue, l)
			require.EqualError(t, err, fmt.Sprintf("components/%s/%s/kustomization.yaml:1:1: error: ", test.owner, test.name)+wrong+"[landscape/overlay]\n"+
				fmt.Sprintf("landscape.yaml:8:7: error: Landscape test: spec.components.%s.%s: ", test.owner, test.name)+wrong+"[landscape/catalogue]")
			_, err = All(l, catalogue, nil)
			require.Error(t, err)
		})
	}
}

// appFlow mentions the only bundle of a small catalogue in both operations.
const appFlow = "package flow\n\nflow: reconcile: nodes: app: apply: [\"app\"]\nflow: delete: nodes: app: remove: [\"app\"]\n"

// TestFlowsAreChecked: a bundle that a flow omits would never be applied or never removed.
func TestFlowsAreChecked(t *testing.T) {
	tree := fstest.MapFS{"landscape.yaml": {Data: []byte(landscapeFile("{}"))}, "g.yaml": {Data: []byte(gardenYAML)}}
	l, violations, err := landscapes.LoadFS(t.Context(), tree, ".", landscapes.Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	catalogue := smallCatalogue(t, map[string]string{
		"garden/app/component.cue": component("cue: ["+oneConfigMap+"]", ""),
		"garden/flow.cue":          strings.Replace(appFlow, "flow: delete: ", "_none: ", 1),
	})
	_, err = All(l, catalogue, nil)
	require.ErrorContains(t, err, `components/garden/flow.cue: there is no operation "delete"; want one of reconcile`)
}

// TestOverlaysOfLayers: the overlays of a layer apply.
func TestOverlaysOfLayers(t *testing.T) {
	patch := func(key string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, data: {" + key + ": set}}'}]\n")}
	}
	tree := fstest.MapFS{
		"base/landscape.yaml":                           {Data: []byte(landscapeFile("{}"))},
		"base/components/garden/app/kustomization.yaml": patch("base"),
		"live/landscape.yaml":                           {Data: []byte(landscapeFile("{layers: [../base]}"))},
		"live/g.yaml":                                   {Data: []byte(gardenYAML)},
	}
	catalogue := smallCatalogue(t, map[string]string{
		"garden/app/component.cue": component("cue: ["+oneConfigMap+"]", ""), "garden/flow.cue": appFlow,
	})
	load := func() []Bundle {
		l, violations, err := landscapes.LoadFS(t.Context(), tree, "live", landscapes.Options{})
		require.NoError(t, err)
		require.Empty(t, violations)
		bundles, err := All(l, catalogue, nil)
		require.NoError(t, err)
		return bundles
	}
	assert.Equal(t, map[string]any{"x": "y", "base": "set"}, objectOf(t, load(), "ConfigMap", "a").Object["data"])
	tree["live/components/garden/app/kustomization.yaml"] = patch("live")
	a := objectOf(t, load(), "ConfigMap", "a")
	assert.Equal(t, map[string]any{"x": "y", "base": "set", "live": "set"}, a.Object["data"])
	assert.Equal(t, "components/garden/app/component.cue:4 overlaid by ../base/components/garden/app, components/garden/app", a.Origin.String())
}

// TestCatalogueVersion: a landscape is only rendered with the catalogue version that it names.
func TestCatalogueVersion(t *testing.T) {
	for spec, refused := range map[string]bool{
		"{}": false,
		"{catalogue: {version: " + components.Version + "}}":      false,
		"{catalogue: {version: v" + components.Version + "}}":     false,
		"{catalogue: {version: 99.0.0}}":                          true,
		"{catalogue: {version: v99.0.0}}":                         true,
		"{catalogue: {version: " + components.Version + "-rc.1}}": true,
	} {
		t.Run(spec, func(t *testing.T) {
			l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("\n  " + spec[1:len(spec)-1])})
			catalogue := smallCatalogue(t, nil)
			_, err := LandscapeOptions(catalogue, l)
			_, all := All(l, catalogue, nil)
			if !refused {
				require.NoError(t, err)
				require.NoError(t, all)
				return
			}
			var found *InvalidError
			require.ErrorAs(t, all, &found)
			require.ErrorAs(t, err, &found)
			require.Len(t, found.Violations, 1)
			assert.Contains(t, found.Violations[0].Message, ", but this program has "+components.Version+": ")
			found.Violations[0].Message = ""
			assert.Equal(t, schemas.Violation{
				Severity: "error", File: "landscape.yaml", Line: 6, Column: 24, Kind: "Landscape", Name: "test",
				Field: "spec.catalogue.version", Type: schemas.TypeNotSupported, Rule: "landscape/catalogue",
			}, found.Violations[0])
		})
	}
}

// TestAllReportsEveryOwner: an error of one owner does not hide those of another.
func TestAllReportsEveryOwner(t *testing.T) {
	l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("{}"), "g.yaml": gardenYAML, "s.yaml": seedYAML})
	var catalogue fs.FS = smallCatalogue(t, map[string]string{
		"garden/app/component.cue": component("cue: [_x]", ""), "seed/app/component.cue": component("cue: [_y]", ""),
	})
	_, err := All(l, catalogue, nil)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "garden main (declared in g.yaml:1:1), component garden/app: ")
	assert.Contains(t, err.Error(), "seed eu (declared in s.yaml:1:1), component seed/app: ")
	_, err = All(l, catalogue, func(o Owner) bool { return o.Kind == "seed" })
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "garden main")
}
