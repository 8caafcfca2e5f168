package render

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
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
		got = append(got, in.Owner.String()+" in "+in.Owner.ControlPlaneNamespace+" sees "+joined(sortedKeys(in.Objects))+" serves "+in.TargetVersion)
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
	clusterOf := ClusterOf(seeds)
	assert.Equal(t, "eu", clusterOf(Bundle{Cluster: ClusterSeed, Owner: inputs[2].Owner}))
	assert.Equal(t, "eu", clusterOf(Bundle{Cluster: ClusterSeed, Owner: inputs[1].Owner}))
	assert.Equal(t, "runtime", clusterOf(Bundle{Cluster: ClusterRuntime, Owner: inputs[0].Owner}))
}

func joined(names []string) string {
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

// TestOwnersErrors: all that is missing is said at once, each with the file and line of the Shoot.
func TestOwnersErrors(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("{}"), "s.yaml": seedYAML, "p.yaml": projectYAML,
		"a.yaml": shootYAML("a", "garden-dev", ", seedName: us"), "b.yaml": shootYAML("b", "garden-other", ", seedName: eu"),
	})
	_, err := Owners(l)
	require.EqualError(t, err, `a.yaml:2: spec.seedName of Shoot garden-dev/a: no Seed "us" in this landscape`+"\n"+
		`b.yaml:2: namespace of Shoot garden-other/b: no Project in this landscape has spec.namespace "garden-other"`)
}

func TestRecordedFactsErrors(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"missing":       {map[string]string{}, "spec.facts of landscape.yaml: "},
		"unknown field": {map[string]string{"facts.txt": "garden main: {secret: {}}\n"}, `facts.txt: `},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["landscape.yaml"] = landscapeFile("{facts: facts.txt}")
			_, err := Owners(loadLandscape(t, test.files))
			require.ErrorContains(t, err, test.want)
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

// TestUnknownComponents: names that fit nothing are most likely misspelt, so nothing is rendered.
func TestUnknownComponents(t *testing.T) {
	l := loadLandscape(t, map[string]string{
		"landscape.yaml": landscapeFile("\n  components:\n    garden:\n      ap: {enabled: false}\n    seed:\n      app: {enabled: true}"),
		"components/garden/vpaa/kustomization.yaml": "patches: []\n",
	})
	catalogue := smallCatalogue(t, map[string]string{"garden/app/component.cue": "", "garden/other/component.cue": "", "seed/system/component.cue": ""})
	_, err := LandscapeOptions(catalogue, l)
	require.EqualError(t, err, "landscape.yaml:8:11: spec.components.garden.ap: no component garden/ap in the catalogue, which has garden/app, garden/other\n"+
		"landscape.yaml:10:12: spec.components.seed.app: no component seed/app in the catalogue, which has seed/system\n"+
		"overlay components/garden/vpaa: no component garden/vpaa in the catalogue, which has garden/app, garden/other")
	_, err = All(l, catalogue, nil)
	require.Error(t, err)
}

// appFlow mentions the one bundle of a small catalogue in both operations.
const appFlow = "package flow\n\nflow: [=~\"^(reconcile|delete)$\"]: nodes: app: {bundles: [\"app\"], task: \"\", after: {}, timeout: \"1m\", if: true}\nflow: {reconcile: {}, delete: {}}\n"

// TestFlowsAreChecked: a bundle that a flow leaves out would never be applied, or never go.
func TestFlowsAreChecked(t *testing.T) {
	tree := fstest.MapFS{"landscape.yaml": {Data: []byte(landscapeFile("{}"))}, "g.yaml": {Data: []byte(gardenYAML)}}
	l, violations, err := landscapes.LoadFS(tree, ".", landscapes.Options{})
	require.NoError(t, err)
	require.Empty(t, violations)
	catalogue := smallCatalogue(t, map[string]string{
		"garden/app/component.cue": component("cue: ["+oneConfigMap+"]", ""),
		"garden/flow.cue":          strings.Replace(appFlow, "{reconcile: {}, delete: {}}", "{reconcile: {}}", 1),
	})
	_, err = All(l, catalogue, nil)
	require.ErrorContains(t, err, `components/garden/flow.cue has no operation "delete"`)
}

// TestOverlaysOfLayers: a layer brings its overlays along.
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
		l, violations, err := landscapes.LoadFS(tree, "live", landscapes.Options{})
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

// TestCatalogueVersion: a landscape is rendered with the catalogue it is written for, or not at all.
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
			var versions *VersionError
			require.True(t, errors.As(err, &versions))
			require.ErrorAs(t, all, &versions)
			assert.Equal(t, components.Version, versions.Have)
			assert.Contains(t, err.Error(), "landscape.yaml:6:24: spec.catalogue.version: the landscape is written for catalogue "+versions.Wanted+", and this program has "+components.Version+": ")
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
	assert.Contains(t, err.Error(), "garden main, component garden/app: ")
	assert.Contains(t, err.Error(), "seed eu, component seed/app: ")
	_, err = All(l, catalogue, func(o Owner) bool { return o.Kind == "seed" })
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "garden main")
}
