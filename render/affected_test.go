// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// dumpComponent is a component that renders the values that tests change.
func dumpComponent(kind, cluster string, values ...string) string {
	text := ""
	for _, v := range values {
		text += fmt.Sprintf("\n\t\tif %[1]s != _|_ {\"the-%[1]s\": json.Marshal(%[1]s)}", v)
	}
	return `package component

import "encoding/json"

all: images

component: {
	images: ["app"]
	bundles: "` + kind + `-\(owner.name)": {cluster: "` + cluster + `", direct: true, source: cue: [{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "` + kind + `-\(owner.name)", namespace: "x"}, data: {
		"the-owner":     json.Marshal(owner)
		"the-versions":  json.Marshal(kubernetes)
		"the-landscape": json.Marshal(landscape)
		"the-addresses": json.Marshal(facts.addresses)
		"the-references": json.Marshal(facts.references)
		"the-image":     all.app` + text + `
	}}]}
}
`
}

func dumpCatalogue(t *testing.T) fstest.MapFS {
	const garden = "garden.spec.virtualCluster.kubernetes.version"
	files := map[string]string{}
	for _, name := range []string{"app", "other"} {
		files["garden/"+name+"/component.cue"] = dumpComponent("garden-"+name, "runtime", garden)
		files["seed/"+name+"/component.cue"] = dumpComponent("seed-"+name, "seed", garden, "seed.metadata")
		files["shoot/"+name+"/component.cue"] = dumpComponent("shoot-"+name, "seed", garden, "seed.metadata", "shoot.metadata", "shoot.spec.purpose", "shoot.spec.dns", "project.spec.description", "cloudProfile.spec.kubernetes.versions")
	}
	return smallCatalogue(t, files)
}

// comparedLandscape is a landscape with two Seeds, three bound Shoots and an unbound one.
func comparedLandscape() map[string]string {
	seed := func(name string) string {
		return "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: " + name + "}\nspec: {provider: {type: local, region: local}}\n"
	}
	profile := "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}\nspec: {type: local, kubernetes: {versions: [{version: 1.33.5}]}}\n"
	return map[string]string{
		"landscape.yaml": landscapeFile("{facts: facts.yaml}"), "facts.yaml": "{}\n",
		"g.yaml": gardenYAML, "eu.yaml": seed("eu"), "us.yaml": seed("us"), "p.yaml": projectYAML, "profile.yaml": profile,
		"a.yaml":       shootYAML("a", "garden-dev", ", seedName: eu, cloudProfile: {kind: CloudProfile, name: local}"),
		"b.yaml":       shootYAML("b", "garden-dev", ", seedName: us, cloudProfile: {kind: CloudProfile, name: local}"),
		"c.yaml":       shootYAML("c", "garden-dev", ", seedName: us, resources: [{name: r, resourceRef: {apiVersion: v1, kind: Secret, name: creds}}, {name: p, resourceRef: {apiVersion: v1, kind: ConfigMap, name: policy}}]"),
		"policy.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy, namespace: garden-dev}\ndata: {policy: a}\n",
		"unbound.yaml": shootYAML("unbound", "garden-dev", ""),
		"secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: creds, namespace: garden-dev}\ndata: {a: YQ==}\n",
		"domain.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: domain, namespace: garden, labels: {gardener.cloud/role: default-domain}, annotations: {dns.gardener.cloud/domain: one.example.com, dns.gardener.cloud/provider: local}}\n",
	}
}

const allOwners = "garden main, seed eu, seed us, shoot garden-dev/a, shoot garden-dev/b, shoot garden-dev/c"

// TestFindAffected makes one change after the other. Owners reported as the same must render to
// equal bytes, and only affected owners may be rendered.
func TestFindAffected(t *testing.T) {
	const shoots = "shoot garden-dev/a, shoot garden-dev/b, shoot garden-dev/c"
	overlay := "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    [{op: add, path: /data/more, value: x}]\n"
	tests := map[string]struct {
		change map[string]string
		want   string
	}{
		"nothing":             {nil, ""},
		"only its form":       {map[string]string{"a.yaml": "# another comment\n" + comparedLandscape()["a.yaml"]}, ""},
		"another file":        {map[string]string{"a.yaml": "", "z.yaml": comparedLandscape()["a.yaml"]}, ""},
		"a Shoot":             {map[string]string{"a.yaml": shootYAML("a", "garden-dev", ", seedName: eu, purpose: testing, cloudProfile: {kind: CloudProfile, name: local}")}, "shoot garden-dev/a"},
		"a confirmation":      {map[string]string{"a.yaml": strings.Replace(comparedLandscape()["a.yaml"], "name: a,", "name: a, annotations: {confirmation.gardener.cloud/deletion: 'true'},", 1)}, ""},
		"a Shoot goes":        {map[string]string{"a.yaml": ""}, "shoot garden-dev/a"},
		"a Shoot comes":       {map[string]string{"d.yaml": shootYAML("d", "garden-dev", ", seedName: eu")}, "shoot garden-dev/d"},
		"a Shoot is bound":    {map[string]string{"unbound.yaml": shootYAML("unbound", "garden-dev", ", seedName: eu")}, "shoot garden-dev/unbound"},
		"a Shoot waits":       {map[string]string{"unbound.yaml": shootYAML("unbound", "garden-dev", ", purpose: testing")}, ""},
		"a Seed":              {map[string]string{"us.yaml": comparedLandscape()["us.yaml"] + "  taints: [{key: a}]\n", "unbound.yaml": ""}, ""},
		"a Secret":            {map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: creds, namespace: garden-dev}\ndata: {a: Yg==}\n"}, "shoot garden-dev/c"},
		"what is referred to": {map[string]string{"policy.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy, namespace: garden-dev}\ndata: {policy: b}\n"}, "shoot garden-dev/c"},
		"another Secret":      {map[string]string{"more.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: policy, namespace: garden-dev}\n"}, ""},
		"the Garden":          {map[string]string{"g.yaml": "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: main}\nspec: {virtualCluster: {kubernetes: {version: 1.34.2}}}\n"}, allOwners},
		"a Project":           {map[string]string{"p.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: Project\nmetadata: {name: dev}\nspec: {namespace: garden-dev, description: new}\n"}, shoots},
		"a CloudProfile":      {map[string]string{"profile.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}\nspec: {type: local, kubernetes: {versions: [{version: 1.33.6}, {version: 1.33.5}]}}\n"}, "shoot garden-dev/a, shoot garden-dev/b"},
		"a default domain":    {map[string]string{"domain.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: domain, namespace: garden, labels: {gardener.cloud/role: default-domain}, annotations: {dns.gardener.cloud/domain: two.example.com, dns.gardener.cloud/provider: local}}\n"}, ""},
		"facts of a Shoot":    {map[string]string{"facts.yaml": "shoot garden-dev/c: {addresses: {kube-apiserver: 10.0.0.1}}\n"}, "shoot garden-dev/c"},
		"an image":            {map[string]string{"landscape.yaml": landscapeFile("{facts: facts.yaml, images: [{name: app, tag: v9}]}")}, allOwners},
		"a component":         {map[string]string{"landscape.yaml": landscapeFile("{facts: facts.yaml, components: {seed: {other: {enabled: false}}}}")}, "seed eu, seed us"},
		"an overlay":          {map[string]string{"components/shoot/app/kustomization.yaml": overlay}, shoots},
		"the Garden API":      {map[string]string{"landscape.yaml": landscapeFile("{facts: facts.yaml, gardenAPI: aggregated}")}, allOwners},
		"a feature gate":      {map[string]string{"landscape.yaml": landscapeFile("{facts: facts.yaml, featureGates: {RemoveVali: true}}")}, allOwners},
		"a layer below all":   {map[string]string{"landscape.yaml": landscapeFile("{facts: facts.yaml, gardenAPI: crd}")}, ""},
	}
	// Changes of mutations to a Seed affect only its Shoots.
	seed := tests["a Seed"]
	seed.change, seed.want = map[string]string{"us.yaml": "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: us, labels: {a: b}}\nspec: {provider: {type: local, region: local}}\n"}, "seed us, shoot garden-dev/b, shoot garden-dev/c"
	tests["a Seed"] = seed
	catalogue := dumpCatalogue(t)
	now := WithTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := comparedLandscape()
			before := loadWithCache(t, files)
			maps.Copy(files, test.change)
			maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
			after := loadWithCache(t, files)
			reach, err := FindAffected(catalogue, State{Landscape: before}, State{Landscape: after}, now)
			require.NoError(t, err)
			reached := map[string]bool{}
			for _, in := range slices.Concat(reach.Old.Inputs, reach.New.Inputs) {
				reached[in.Owner.String()] = true
			}
			assert.Equal(t, test.want, strings.Join(sortedKeys(reached), ", "))
			sparing, err := FindAffected(catalogue, State{Landscape: before, IsPartial: true}, State{Landscape: after, IsPartial: true}, now, WithSampling(0))
			require.NoError(t, err)
			whole, err := FindAffected(catalogue, State{Landscape: before, IsPartial: true}, State{Landscape: after, IsPartial: true}, now)
			require.NoError(t, err)
			assert.Equal(t, changedObjects(t, whole), changedObjects(t, sparing), "sparingly the same is found")
			old, new := manifests(t, catalogue, before, now), manifests(t, catalogue, after, now)
			for owner := range old {
				if name == "a default domain" {
					// only a new Shoot gets another domain; existing ones keep theirs
					continue
				}
				assert.Equal(t, reached[owner], old[owner] != new[owner], "%s differs exactly if it is reached", owner)
			}
			for _, owner := range reach.Unaffected {
				if name != "a default domain" {
					assert.Equal(t, old[owner.String()], new[owner.String()])
				}
			}
		})
	}
}

// changedObjects are the objects that a change adds, removes or alters, before and after it.
func changedObjects(t *testing.T, reach Affected) map[string][2]string {
	t.Helper()
	before, after, wrong, err := reach.Render()
	require.NoError(t, err)
	require.NoError(t, wrong)
	out := map[string][2]string{}
	for side, bundles := range [][]Bundle{before, after} {
		for _, b := range bundles {
			for _, o := range b.Objects {
				name := b.Owner.String() + " " + o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
				text, err := MarshalYAML(o.Object)
				require.NoError(t, err)
				both := out[name]
				both[side] = string(text)
				out[name] = both
			}
		}
	}
	maps.DeleteFunc(out, func(_ string, both [2]string) bool { return both[0] == both[1] })
	return out
}

// TestWithSampling: for owners that only a setting affects, only its components are rendered.
// Shoots with unchanged declarations are sampled by form; others are always compared.
func TestWithSampling(t *testing.T) {
	const overlay = "patches:\n- target: {kind: ConfigMap}\n  patch: |\n    [{op: add, path: /data/more, value: x}]\n"
	catalogue := dumpCatalogue(t)
	now := WithTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	files := comparedLandscape()
	files["c.yaml"] = shootYAML("c", "garden-dev", ", seedName: us") // the same form as many
	for i := range 8 {
		files[fmt.Sprintf("many-%d.yaml", i)] = shootYAML(fmt.Sprintf("many-%d", i), "garden-dev", ", seedName: eu")
	}
	files["one.yaml"] = shootYAML("one", "garden-dev", ", seedName: us, purpose: testing")
	before := loadWithCache(t, files)
	files["components/shoot/app/kustomization.yaml"] = overlay
	files["many-7.yaml"] = shootYAML("many-7", "garden-dev", ", seedName: eu, purpose: production")
	after := loadWithCache(t, files)
	reach, err := FindAffected(catalogue, State{Landscape: before, IsPartial: true}, State{Landscape: after, IsPartial: true}, now, WithSampling(4))
	require.NoError(t, err)
	names := func(owners []Owner) (out []string) {
		for _, o := range owners {
			out = append(out, o.Name)
		}
		return out
	}
	assert.Equal(t, []string{"a", "b", "c", "one"}, names(reach.Sampled), "two of the first form, and one of each other")
	assert.Equal(t, []string{"many-0", "many-1", "many-2", "many-3", "many-4", "many-5", "many-6"}, names(reach.Unsampled))
	found := changedObjects(t, reach)
	assert.Contains(t, found, "shoot garden-dev/many-7 ConfigMap x/shoot-other-many-7", "it is declared in another way")
	assert.Contains(t, found, "shoot garden-dev/a ConfigMap x/shoot-app-a")
	rendered := 0
	for part := range reach.Split(2) {
		assert.LessOrEqual(t, len(part.New.Inputs), 2)
		_, after, _, err := part.Render()
		require.NoError(t, err)
		rendered += len(after)
	}
	assert.Equal(t, 4*1+2, rendered, "one component of those that the overlay reaches, both of the other")
}

// loadWithCache reads a landscape twice with a store, so that the digests of its files are known.
func loadWithCache(t *testing.T, files map[string]string) (l *landscapes.Landscape) {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	store := resultcache.InMemory()
	for range 2 {
		var violations []schemas.Violation
		var err error
		l, violations, err = landscapes.LoadFS(t.Context(), tree, ".", landscapes.Options{ResultCache: store})
		require.NoError(t, err)
		require.False(t, schemas.HasErrors(violations), "%v", violations)
	}
	return l
}

// manifests renders all owners completely.
func manifests(t *testing.T, catalogue fstest.MapFS, l *landscapes.Landscape, settings ...Setting) map[string]string {
	t.Helper()
	inputs, err := Owners(l, settings...)
	require.NoError(t, err)
	out := map[string]string{}
	for _, in := range inputs {
		result, err := Render(in, landscapeOptions(catalogue, l))
		require.NoError(t, err)
		out[in.Owner.String()] = manifest(t, result.Bundles)
	}
	return out
}

// TestAffectedKeepsVersions: a Shoot with incomplete versions keeps its previous ones, whatever
// a profile offers later. Only another declaration changes them; a new Shoot gets the newest.
func TestAffectedKeepsVersions(t *testing.T) {
	profile := func(versions, images string) string {
		return "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}\nspec: {type: local, kubernetes: {versions: [" + versions + "]}, " +
			"machineImages: [{name: os, versions: [" + images + "]}], machineTypes: [{name: m, cpu: \"2\", gpu: \"0\", memory: 8Gi}]}\n"
	}
	shoot := func(name, version, image string) string {
		return "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: " + name + ", namespace: garden-dev}\nspec: {region: local, seedName: eu, cloudProfile: {kind: CloudProfile, name: local}, " +
			"kubernetes: {version: \"" + version + "\"}, provider: {type: local, workers: [{name: p, minimum: 1, maximum: 1, machine: {type: m" + image + "}}]}}\n"
	}
	const before, after = "{version: 1.33.5}", "{version: 1.34.1}, {version: 1.33.6}, {version: 1.33.5}"
	const imagesBefore, imagesAfter = "{version: 1.0.0}", "{version: 1.1.0}, {version: 1.0.0}"
	tests := map[string]struct {
		old, new  string // for Shoot a
		version   string
		image     string
		unchanged bool
	}{
		"left open":             {shoot("a", "1.33", ""), shoot("a", "1.33", ""), "1.33.5", "1.0.0", true},
		"left open from now on": {shoot("a", "1.33.5", ", image: {name: os, version: 1.0.0}"), shoot("a", "1.33", ", image: {name: os}"), "1.33.5", "1.0.0", true},
		"another minor version": {shoot("a", "1.33", ""), shoot("a", "1.34", ""), "1.34.1", "1.0.0", false},
		"named in full":         {shoot("a", "1.33", ""), shoot("a", "1.33.6", ", image: {name: os, version: 1.1.0}"), "1.33.6", "1.1.0", false},
		"new":                   {"", shoot("a", "1.33", ""), "1.33.6", "1.1.0", false},
	}
	now := WithTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := comparedLandscape()
			for _, other := range []string{"b.yaml", "c.yaml", "unbound.yaml"} {
				delete(files, other)
			}
			files["profile.yaml"], files["a.yaml"] = profile(before, imagesBefore), test.old
			if test.old == "" {
				delete(files, "a.yaml")
			}
			old := loadWithCache(t, files)
			files["profile.yaml"], files["a.yaml"] = profile(after, imagesAfter), test.new
			reach, err := FindAffected(dumpCatalogue(t), State{Landscape: old}, State{Landscape: loadWithCache(t, files)}, now)
			require.NoError(t, err)
			require.Len(t, reach.New.Inputs, 1)
			in := reach.New.Inputs[0]
			assert.Equal(t, test.version, in.TargetVersion)
			workers := in.Objects["shoot"]["spec"].(map[string]any)["provider"].(map[string]any)["workers"].([]any)
			image := workers[0].(map[string]any)["machine"].(map[string]any)["image"].(map[string]any)
			assert.Equal(t, test.image, image["version"])
			if test.unchanged {
				assert.Equal(t, reach.Old.Inputs[0].Objects["shoot"], in.Objects["shoot"])
			}
		})
	}
}

func TestAffectedOnOneSide(t *testing.T) {
	l := loadWithCache(t, comparedLandscape())
	reach, err := FindAffected(dumpCatalogue(t), State{}, State{Landscape: l})
	require.NoError(t, err)
	assert.Empty(t, reach.Unaffected)
	assert.Empty(t, reach.Old.Inputs)
	assert.Len(t, reach.New.Inputs, 6)
}

func TestAffectedErrorsNameTheSide(t *testing.T) {
	files := comparedLandscape()
	sound := loadWithCache(t, files)
	files["a.yaml"] = shootYAML("a", "garden-dev", ", seedName: nowhere, cloudProfile: {kind: CloudProfile, name: local}")
	broken := loadWithCache(t, files)
	_, err := FindAffected(dumpCatalogue(t), State{Landscape: broken, Name: "revision main"}, State{Landscape: sound})
	require.ErrorContains(t, err, "revision main: ")
	require.ErrorContains(t, err, `no Seed "nowhere"`)
	reach, err := FindAffected(dumpCatalogue(t), State{Landscape: broken, IsPartial: true}, State{Landscape: sound})
	require.NoError(t, err)
	assert.Empty(t, reach.Old.Inputs)
	require.Len(t, reach.New.Inputs, 1)
	assert.Equal(t, "shoot garden-dev/a", reach.New.Inputs[0].Owner.String())
}

// TestDigestSeesEveryField: every field of an input or the options changes the digest, except the
// listed ones.
func TestDigestSeesEveryField(t *testing.T) {
	digest := func(in Input, opts Options) InputDigest {
		d, err := DigestInput(in, opts)
		require.NoError(t, err)
		return d
	}
	whole := gardenInput()
	whole.SeedIsGarden = true
	whole.GardenAPI, whole.FeatureGates = "aggregated", &landscapev1alpha1.FeatureGates{RemoveVali: ptr.To(true)}
	whole.DeclarationPosition, whole.MutationChanges = "a.yaml:1:1", []mutation.Change{{}}
	whole.Facts = Facts{Secrets: map[string]SecretFact{"ca": {Name: "a"}}, Clusters: map[string]ClusterFact{"runtime": {}}, Addresses: map[string]string{"a": "b"}, Extensions: map[string]map[string]any{"a": {"b": 1.5}},
		References: map[string]ReferenceFact{"Secret/a": {Checksum: "b"}}, WildcardCertificate: &WildcardCertificateFact{Name: "a"},
		Seeds: []SeedFact{{Name: "a"}}}
	whole.References, whole.DeclaredReferences = map[string]ReferenceFact{"Secret/a": {}}, map[string]func() *unstructured.Unstructured{"Secret/a": nil}
	whole.Extensions, whole.Charts, whole.ChartsRequired = map[string]Extension{"a": {Name: "a"}}, map[string]Chart{"a": {Digest: "b"}}, true
	whole.ResourceChecksums = map[string]string{"Secret/a": "b"}
	before := digest(whole, Options{})
	for i := range reflect.TypeFor[Input]().NumField() {
		name := reflect.TypeFor[Input]().Field(i).Name
		changed := whole
		reflect.ValueOf(&changed).Elem().Field(i).SetZero()
		if slices.Contains(undigestedFields(), name) {
			assert.Equal(t, before, digest(changed, Options{}), name)
		} else {
			assert.NotEqual(t, before, digest(changed, Options{}), name)
		}
	}
	eachLeaf(reflect.ValueOf(&whole.Facts).Elem(), func(path string, change func(), restore func()) {
		change()
		assert.NotEqual(t, before, digest(whole, Options{}), path)
		restore()
	})

	overlay := func(text, name string) Options {
		return Options{Overlays: []Overlay{{Component: "garden/app", FS: fstest.MapFS{"o/kustomization.yaml": {Data: []byte(text)}}, Dir: "o", Name: name}}}
	}
	others := []Options{
		overlay("a", "x"), overlay("b", "x"), overlay("a", "y"), {ImageOverrides: []Image{{Name: "a"}}}, {ImageOverrides: []Image{{Name: "b"}}},
		{Enabled: map[string]bool{"garden/a": true}}, {Enabled: map[string]bool{"garden/a": false}}, {OnlyComponents: []string{"garden/a"}},
	}
	seen := map[InputDigest]bool{before: true}
	for i, opts := range others {
		d := digest(whole, opts)
		assert.False(t, seen[d], "options %d", i)
		seen[d] = true
	}
	seed := overlay("a", "x")
	seed.Overlays[0].Component = "seed/app"
	seed.Enabled = map[string]bool{"shoot/a": true}
	assert.Equal(t, before, digest(whole, seed), "what is for others does not count")
	var fields []string
	for i := range reflect.TypeFor[Options]().NumField() {
		fields = append(fields, reflect.TypeFor[Options]().Field(i).Name)
	}
	assert.Equal(t, []string{"Catalogue", "Overlays", "ImageOverrides", "Enabled", "enabledPositions", "probes", "kinds", "skipChecks", "evaluators", "OnlyComponents"}, fields,
		"a new option has to count in Options.digest; the catalogue is the same by contract, positions, probes and skipChecks are for findings, kinds follow from the others, and evaluators only save time")
}

// eachLeaf sets one field at a time to zero.
func eachLeaf(v reflect.Value, do func(path string, change, restore func())) {
	for i := range v.NumField() {
		field := v.Field(i)
		before := reflect.New(field.Type()).Elem()
		before.Set(field)
		do(v.Type().Field(i).Name, field.SetZero, func() { field.Set(before) })
	}
}

// TestDigestTellsValuesApart lists values that are easily confused.
func TestDigestTellsValuesApart(t *testing.T) {
	seen := map[InputDigest]any{}
	for _, value := range []any{
		nil, "", "1", int64(1), float64(1), true, false, []any{}, []any{""}, []any{nil}, map[string]any{}, map[string]any{"": ""}, map[string]any{"a": "b"},
		map[string]any{"a": map[string]any{"b": "c"}}, map[string]any{"a": map[string]any{}, "b": "c"}, []any{"a", "b"}, []any{"ab"}, []any{[]any{"a"}, "b"}, "ab",
	} {
		d := newDigester()
		d.add(value)
		sum := d.sum()
		assert.NotContains(t, seen, sum, "%#v and %#v", value, seen[sum])
		seen[sum] = value
	}
}

// TestSameDigestSameBytes: in all variants of the real catalogue, owners with equal digests render
// to equal bytes, and different variants have different digests.
func TestSameDigestSameBytes(t *testing.T) {
	known := map[InputDigest]string{}
	kinds := map[string]map[InputDigest]bool{}
	for _, v := range variants {
		rendered := renderedVariants[v.name](t)
		for i, in := range rendered.inputs {
			digest, err := DigestInput(in, Options{Catalogue: components.FS})
			require.NoError(t, err)
			text := manifest(t, rendered.results[i].Bundles)
			if before, ok := known[digest]; ok {
				assert.Equal(t, before, text, "%s, %s", v.name, in.Owner)
			}
			known[digest] = text
			if kinds[in.Owner.Kind] == nil {
				kinds[in.Owner.Kind] = map[InputDigest]bool{}
			}
			kinds[in.Owner.Kind][digest] = true
		}
	}
	for kind, digests := range kinds {
		assert.Greater(t, len(digests), 3, kind)
	}
}
