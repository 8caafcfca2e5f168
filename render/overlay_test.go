// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
)

// twoBundles is a component with two bundles of one object each.
const twoBundles = `package component

component: bundles: {
	one: {cluster: "runtime", direct: true, source: cue: [` + oneConfigMap + `]}
	two: {cluster: "runtime", direct: true, source: cue: [{apiVersion: "v1", kind: "Secret", metadata: {name: "s", namespace: "garden", ` + hashedMark + `}, stringData: a: "1"}]}
}
`

// renderOverlaid renders twoBundles with overlays, each a folder of files.
func renderOverlaid(t *testing.T, overlays ...map[string]string) (Result, error) {
	t.Helper()
	opts := Options{Catalogue: smallCatalogue(t, map[string]string{"garden/app/component.cue": twoBundles})}
	for i, files := range overlays {
		tree := fstest.MapFS{}
		for name, text := range files {
			tree["layer/components/garden/app/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		name := "components/garden/app"
		if i < len(overlays)-1 {
			name = "../base/" + name
		}
		opts.Overlays = append(opts.Overlays, Overlay{Component: "garden/app", FS: tree, Dir: "layer/components/garden/app", Name: name})
	}
	return Render(gardenInput(), opts)
}

func TestOverlayPatches(t *testing.T) {
	res, err := renderOverlaid(t, map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]\n", "p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\ndata: {x: z}\n"})
	require.NoError(t, err)
	a := objectOf(t, res.Bundles, "ConfigMap", "a")
	assert.Equal(t, map[string]any{"x": "z"}, a.Object["data"])
	assert.Equal(t, "components/garden/app/component.cue:4 overlaid by components/garden/app", a.Origin.String())
	assert.Empty(t, a.GetAnnotations(), "what carries an object through the build is taken off")
	s := objectOf(t, res.Bundles, "Secret", "s-e0bc614e")
	assert.Equal(t, "components/garden/app/component.cue:5", s.Origin.String(), "untouched")
	assert.Equal(t, []string{"one", "two"}, []string{res.Bundles[0].Name, res.Bundles[1].Name})
}

// TestOverlayComesBeforeHashing: a patched ConfigMap gets the name of its new content.
func TestOverlayComesBeforeHashing(t *testing.T) {
	hashed := component(`cue: [{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "s", namespace: "garden", `+hashedMark+`}, data: a: "1"}]`, "")
	names := map[string]bool{}
	for _, value := range []string{"2", "3"} {
		patch := "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: s, namespace: garden}, data: {a: \"" + value + "\"}}'}]\n"
		tree := fstest.MapFS{"app/kustomization.yaml": {Data: []byte(patch)}}
		res, err := Render(gardenInput(), Options{
			Catalogue: smallCatalogue(t, map[string]string{"garden/app/component.cue": hashed}),
			Overlays:  []Overlay{{Component: "garden/app", FS: tree, Dir: "app", Name: "components/garden/app"}},
		})
		require.NoError(t, err)
		name := res.Bundles[0].Objects[0].GetName()
		assert.Regexp(t, "^s-[0-9a-f]{8}$", name)
		names[name] = true
	}
	assert.Len(t, names, 2)
}

func TestOverlayAdds(t *testing.T) {
	const added = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n  namespace: garden\n"
	res, err := renderOverlaid(t, map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": added + "  annotations: {render.pergola.dev/bundle: two}\n"})
	require.NoError(t, err)
	require.Len(t, res.Bundles[1].Objects, 2)
	more := objectOf(t, res.Bundles[1:], "ConfigMap", "more")
	assert.Empty(t, more.GetAnnotations())
	assert.Equal(t, "components/garden/app/more.yaml:1 overlaid by components/garden/app", more.Origin.String())

	_, err = renderOverlaid(t, map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": added})
	require.ErrorContains(t, err, "components/garden/app/more.yaml:1:1: the overlay adds ConfigMap more without a bundle: set the annotation render.pergola.dev/bundle to one of one, two")
}

func TestOverlayRemoves(t *testing.T) {
	_, err := renderOverlaid(t, map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, $patch: delete}'}]\n"})
	require.ErrorContains(t, err, "bundle one rendered no object")
}

func TestOverlaysOfLayersAreAppliedInOrder(t *testing.T) {
	patch := func(value string) map[string]string {
		return map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, data: {x: " + value + ", " + value + ": set}}'}]\n"}
	}
	res, err := renderOverlaid(t, patch("base"), patch("top"))
	require.NoError(t, err)
	a := objectOf(t, res.Bundles, "ConfigMap", "a")
	assert.Equal(t, map[string]any{"x": "top", "base": "set", "top": "set"}, a.Object["data"])
	assert.Equal(t, "components/garden/app/component.cue:4 overlaid by ../base/components/garden/app, components/garden/app", a.Origin.String())
}

// overlayLandscape is a landscape with a Garden, a Seed, and an overlay of garden/app in a layer or
// the landscape itself.
func overlayLandscape(t *testing.T, files map[string]string) *landscapes.Landscape {
	t.Helper()
	all := map[string]string{"landscape.yaml": landscapeFile("{}"), "g.yaml": gardenYAML, "s.yaml": seedYAML}
	for name, text := range files {
		all[path.Join("components/garden/app", name)] = text
	}
	return loadLandscape(t, all)
}

// TestOverlayFindings: all faults of an overlay are found before any action, with their position.
func TestOverlayFindings(t *testing.T) {
	const (
		good  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\ndata: {x: z}\n"
		place = "components/garden/app/kustomization.yaml:"
	)
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"no match": {map[string]string{"kustomization.yaml": "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/data/x\", \"value\": \"z\"}]', target: {kind: ConfigMap, name: b}}]\n"},
			[]string{place + `1:71: error: patches[0].target: matches nothing: the component has no ConfigMap "b"; did you mean "a"? [landscape/overlay]`}},
		"one matches, another one does not": {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n- path: q.yaml\n", "p.yaml": good,
			"q.yaml": "---\n" + good + "---\n# another\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n"},
			[]string{`components/garden/app/q.yaml:8:1: error: patches[1]: matches nothing: the component has no Deployment "b" of apps/v1; its kinds are ConfigMap, Secret [landscape/overlay]`}},
		"another namespace": {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n", "p.yaml": strings.ReplaceAll(good, "namespace: garden", "namespace: other")},
			[]string{`components/garden/app/p.yaml:1:1: error: patches[0]: matches nothing: the component has no ConfigMap "a" in namespace other of v1; the object with that name has apiVersion v1 in namespace "garden"`}},
		"old forms": {map[string]string{"kustomization.yaml": "patchesStrategicMerge: [p.yaml]\npatchesJson6902:\n- target: {version: v1, kind: ConfigMap, name: b}\n  patch: '[{op: remove, path: /data}]'\n", "p.yaml": good},
			[]string{place + `3:3: error: patchesJson6902[0].target: matches nothing: `}},
		"replacement of nothing": {map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]\nreplacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.x}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: [data.y]\n    options: {create: true}\n  - select: {kind: ConfigMap, name: b}\n    fieldPaths: [data.y]\n", "p.yaml": good},
			[]string{place + `8:5: error: replacements[0]: matches nothing: the component has no ConfigMap "b"; did you mean "a"?`}},
		"replacement of what is rejected": {map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]\nreplacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.x}\n  targets:\n  - select: {kind: ConfigMap}\n    reject: [{kind: ConfigMap}]\n    fieldPaths: [data.y]\n    options: {create: true}\n", "p.yaml": good},
			[]string{place + "5:5: error: replacements[0]: matches nothing: the component has no ConfigMap"}},
		"replacement from nothing": {map[string]string{"kustomization.yaml": "replacements:\n- source: {kind: ConfigMap, name: b, fieldPath: data.x}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: [data.y]\n"},
			[]string{place + `2:3: error: replacements[0].source: there is no ConfigMap "b" to take the value from`}},
		"replacement from no field": {map[string]string{"kustomization.yaml": "replacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.q}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: [data.y]\n"},
			[]string{place + `2:38: error: replacements[0].source.fieldPath: ConfigMap "a" has no field "data.q"`}},
		"replacement of no field": {map[string]string{"kustomization.yaml": "replacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.x}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: [data.x, data.y]\n"},
			[]string{place + `5:26: error: replacements[0].targets[0].fieldPaths[1]: the target has no field "data.y": correct it, or set options.create`}},
		"replacement from several": {map[string]string{"kustomization.yaml": "replacements:\n- source: {version: v1}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: [data.x]\n"},
			[]string{place + `2:3: error: replacements[0].source: several objects are selected: `}},
		"image of nothing": {map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]\nimages:\n- {name: nope, newTag: v1}\n", "p.yaml": good},
			[]string{place + `3:3: error: images[0]: matches nothing: the component has no image "nope"`}},
		"nested component": {map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]\ncomponents: [more]\n", "p.yaml": good,
			"more/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}'\n"},
			[]string{`components/garden/app/more/kustomization.yaml:4:3: error: patches[0]: matches nothing: `}},
		"same as before": {map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, data: {x: \"y\"}}'}]\n"},
			[]string{place + "1:1: error: the overlay changes nothing"}},
		"no YAML":                  {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n path: x\n"}, []string{place + "3:2: error: this is not YAML: the line is indented by 1 space"}},
		"two documents":            {map[string]string{"kustomization.yaml": "patches: []\n---\npatches: []\n"}, []string{place + "3:1: error: the file must hold one document"}},
		"unknown fields":           {map[string]string{"kustomization.yaml": "patchs: []\nimages:\n- nmae: x\n"}, []string{place + `1:1: error: patchs: the field "patchs" does not exist; did you mean "patches"?`, place + `3:3: error: images[0].nmae: the field "nmae" does not exist; did you mean "name"?`}},
		"wrong type":               {map[string]string{"kustomization.yaml": "patches: p.yaml\nnamespace: 7\n"}, []string{place + "1:10: error: patches: must be a list", place + "2:12: error: namespace: must be text"}},
		"another kind":             {map[string]string{"kustomization.yaml": "apiVersion: v1\nkind: Other\n"}, []string{place + "2:1: error: kind: kind should be Kustomization or Component"}},
		"remote":                   {map[string]string{"kustomization.yaml": "resources:\n- https://example.org/x\n"}, []string{place + `2:3: error: resources[0]: "https://example.org/x" is not in this folder: remote files are not supported`}},
		"parent":                   {map[string]string{"kustomization.yaml": "resources:\n- ../../secret.yaml\n- /etc/passwd\n"}, []string{place + `2:3: error: resources[0]: "../../secret.yaml" leaves the folder`, place + `3:3: error: resources[1]: "/etc/passwd" leaves the folder`}},
		"no such files":            {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches:\n- path: b.yaml\nreplacements:\n- path: c.yaml\n"}, []string{place + `1:13: error: resources[0]: there is no file "a.yaml" in this folder`, place + `3:3: error: patches[0].path: there is no file "b.yaml"`, place + `5:3: error: replacements[0].path: there is no file "c.yaml"`}},
		"text of a patch":          {map[string]string{"kustomization.yaml": "patches:\n- target: {kind: Deployment}\n  patch: |\n  - op: remove\n    path: /spec/replicas\n"}, []string{place + "4:3: error: this is not YAML: the block of text of line 3 begins here without indentation"}},
		"broken resource":          {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "# x\nkind: [\n"}, []string{"components/garden/app/a.yaml:2:7: error: this is not YAML: "}},
		"no object":                {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "\nx: y\n"}, []string{"components/garden/app/a.yaml:2:1: error: not an object: "}},
		"two kustomizations":       {map[string]string{"kustomization.yaml": "labels: []\n", "kustomization.yml": "labels: []\n"}, []string{"components/garden/app/kustomization.yml:1:1: error: the folder also has kustomization.yaml, and Kustomize rejects a folder with both"}},
		"folder":                   {map[string]string{"kustomization.yaml": "resources: [more]\n", "more/a.yaml": good}, []string{"components/garden/app/more:1:1: error: the folder has no kustomization.yaml"}},
		"plugins":                  {map[string]string{"kustomization.yaml": "generators: [g.yaml]\nhelmCharts: [{name: x}]\n"}, []string{place + "1:1: error: generators: ", place + "2:1: error: helmCharts: "}},
		"a chart, wrongly written": {map[string]string{"kustomization.yaml": "helmCharts:\n- name: x\n  version: 1\n  nmae: y\n"}, []string{place + "1:1: error: helmCharts: Helm is not supported here"}},
		"a chart that is text":     {map[string]string{"kustomization.yaml": "helmCharts: x\n"}, []string{place + "1:1: error: helmCharts: Helm is not supported here"}},
		"settings of Helm":         {map[string]string{"kustomization.yaml": "helmGlobals: {chartHome: 1}\n"}, []string{place + "1:1: error: helmGlobals: Helm is not supported here"}},
		"an old chart":             {map[string]string{"kustomization.yaml": "helmChartInflationGenerator:\n- chartVersion: 1\n"}, []string{place + "1:1: error: helmChartInflationGenerator: Helm is not supported here"}},
		"names of all":             {map[string]string{"kustomization.yaml": "nameSuffix: \"\"\nnamePrefix: x-\n"}, []string{place + "2:1: error: namePrefix: renames all objects of the component, which others refer to by name"}},
		"a stream of JSON":         {map[string]string{"kustomization.yaml": "resources: [c.json]\n", "c.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}` + "\n" + `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}`}, []string{"components/garden/app/c.json:2:1: error: Kustomize reads only the first value of a JSON stream: put a line with --- before each of the others"}},
		"a plugin, and a mistake":  {map[string]string{"kustomization.yaml": "transformers: [7]\nnamespace: 7\n"}, []string{place + "1:1: error: transformers: generators, ", place + "2:12: error: namespace: must be text"}},
		"a secret as a number":     {map[string]string{"kustomization.yaml": "secretGenerator:\n- name: 7\n"}, []string{place + "1:1: error: secretGenerator: everyone can read a render"}},
		"secret generator":         {map[string]string{"kustomization.yaml": "secretGenerator:\n- name: t\n  literals: [p=hunter2]\n"}, []string{place + "1:1: error: secretGenerator: everyone can read a render"}},
		"empty patch":              {map[string]string{"kustomization.yaml": "patches:\n- {}\n- path: p.yaml\n", "p.yaml": "# nothing\n"}, []string{place + "2:3: error: patches[0]: set one of patch and path", "components/garden/app/p.yaml:1:1: error: patches[1]: the patch is empty"}},
		"broken patch":             {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n", "p.yaml": "apiVersion: v1\nkind: {\n"}, []string{"components/garden/app/p.yaml:2:7: error: patches[0]: this is not YAML: "}},
		"patch of nobody":          {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n", "p.yaml": "kind: ConfigMap\n"}, []string{"components/garden/app/p.yaml:1:1: error: patches[0]: a patch without a target names its object"}},
		"no operation":             {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    - op: ad\n      path: /x\n  target: {kind: ConfigMap}\n"}, []string{place + "3:5: error: patches[0]: operation 0: op is one of add, remove"}},
		"failing patch":            {map[string]string{"kustomization.yaml": "patches:\n- path: p.yaml\n- patch: '[{op: remove, path: /spec/x}]'\n  target: {kind: ConfigMap, name: a}\n", "p.yaml": good}, []string{place + "3:3: error: patches[1]: operation 0 (remove): ConfigMap a has no \"spec\" at /; it has apiVersion, data, kind, metadata [landscape/overlay-path]"}},
		"broken selector":          {map[string]string{"kustomization.yaml": "patches:\n- patch: '[{op: remove, path: /data}]'\n  target: {name: '(a'}\n"}, []string{place + "3:3: error: patches[0].target: "}},
		"broken label selector":    {map[string]string{"kustomization.yaml": "patches:\n- patch: '[{op: remove, path: /data}]'\n  target: {kind: ConfigMap, labelSelector: a in b}\n"}, []string{place + `3:29: error: patches[0].target.labelSelector: "a in b" is not a selector such as app=web or app in (web, api): `}},
		"a file in other cases":    {map[string]string{"kustomization.yaml": "patches:\n- path: P.yaml\n  target: {kind: ConfigMap}\n", "p.yaml": good}, []string{place + `2:3: error: patches[0].path: there is no file "P.yaml" in this folder; did you mean "p.yaml"?`}},
		"a directive":              {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden},\n    data: {$patch: replcae, x: z}}\n"}, []string{place + `4:12: error: patches[0]: data.$patch: "replcae" is not delete, merge or replace; did you mean "replace"?`}},
		"secret": {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "# s\n{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: garden}, stringData: {p: hunter2}}\n"},
			[]string{"components/garden/app/s.yaml:1:1: error: the overlay sets data of Secret t"}},
		"no bundle": {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: garden}}\n"},
			[]string{"components/garden/app/s.yaml:1:1: error: the overlay adds ConfigMap t without a bundle: set the annotation render.pergola.dev/bundle to one of one, two"}},
		"bundle that is not there": {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: garden, annotations: {render.pergola.dev/bundle: tow}}}\n"},
			[]string{`components/garden/app/s.yaml:1:1: error: the overlay adds ConfigMap t by the annotation render.pergola.dev/bundle to bundle "tow", which the component does not have; did you mean "two"?`}},
		"generated name": {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "# s\n{apiVersion: v1, kind: ConfigMap, metadata: {generateName: t-, namespace: garden}}\n"},
			[]string{"components/garden/app/s.yaml:1:1: error: metadata.name: ConfigMap has metadata.generateName, so each apply would create a new object: set metadata.name"}},
		"no name": {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": good + "---\n{apiVersion: v1, kind: Secret, metadata: {namespace: garden}}\n"},
			[]string{"components/garden/app/s.yaml:6:1: error: metadata.name: Secret has no metadata.name: set it"}},
		"replicas of nothing": {map[string]string{"kustomization.yaml": "replicas:\n- {name: a, count: 3}\n"},
			[]string{place + `2:3: error: replicas[0]: there is no Deployment or StatefulSet or ReplicaSet or ReplicationController "a" [landscape/overlay]`}},
		"replicas, misspelt": {map[string]string{"kustomization.yaml": "resources: [d.yaml]\nreplicas:\n- {name: druidd, count: 3}\n", "d.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: druid, namespace: garden, annotations: {render.pergola.dev/bundle: one}}}\n"},
			[]string{place + `3:3: error: replicas[0]: there is no Deployment or StatefulSet or ReplicaSet or ReplicationController "druidd"; did you mean "druid"? [landscape/overlay]`}},
		"merge with nothing": {map[string]string{"kustomization.yaml": "configMapGenerator:\n- {name: x, literals: [z=1]}\n- {name: nothing, behavior: merge, literals: [x=hunter2]}\n"},
			[]string{place + `3:4: error: configMapGenerator[1].name: there is no ConfigMap nothing to merge with or to replace; there is a [landscape/overlay]`}},
		"merge in no namespace": {map[string]string{"kustomization.yaml": "configMapGenerator:\n- {name: a, behavior: replace, literals: [x=hunter2]}\n"},
			[]string{place + `2:4: error: configMapGenerator[0].name: there is no ConfigMap a to merge with or to replace; it is in namespace garden: set namespace [landscape/overlay]`}},
		"generated twice": {map[string]string{"kustomization.yaml": "generatorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator:\n- {name: a, namespace: garden, literals: [x=hunter2]}\n"},
			[]string{place + `3:4: error: configMapGenerator[0].name: there is a ConfigMap garden/a already: set behavior to merge or replace, or choose another name [landscape/overlay]`}},
		"secret in a broken patch": {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    kind: Secret\n    stringData: {p: hunter2\n"}, []string{place + "4:17: error: patches[0]: this is not YAML: "}},
		"all at once":              {map[string]string{"kustomization.yaml": "resources: [x.yaml]\npatches: [{path: y.yaml}]\ngenerators: [z.yaml]\n"}, []string{place + "1:13: ", place + "2:12: ", place + "3:1: "}},
	}
	catalogue := smallCatalogue(t, map[string]string{"garden/app/component.cue": twoBundles, "garden/flow.cue": appFlow})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := overlayLandscape(t, test.files)
			violations := CheckLandscape(catalogue, l)
			require.Len(t, violations, len(test.want), "%v", violations)
			for i, want := range test.want {
				text := violations[i].String()
				assert.Contains(t, text, want)
				assert.NotContains(t, text, "hunter2")
				assert.NotContains(t, text, componentFolder)
			}
			_, err := All(l, catalogue, nil)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, "nothing is rendered")
			assert.Equal(t, violations, invalid.Violations)
		})
	}
}

// TestOverlayForSomeOwners: an overlay is for all owners of a kind, so each part has to match one
// of them.
func TestOverlayForSomeOwners(t *testing.T) {
	catalogue := smallCatalogue(t, map[string]string{
		"seed/app/component.cue": "package component\n\ncomponent: bundles: app: {cluster: \"seed\", direct: true, source: cue: [" +
			"{apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"a-\\(owner.name)\", namespace: \"garden\"}, data: x: \"y\"}," +
			"{apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"all\", namespace: \"of-\\(owner.name)\"}, data: x: \"y\"}]}\n",
		"seed/flow.cue": appFlow,
	})
	patch := func(name string) string {
		return "- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {x: z}}'\n"
	}
	files := map[string]string{
		"landscape.yaml": landscapeFile("{}"), "s.yaml": seedYAML, "t.yaml": strings.ReplaceAll(seedYAML, "name: eu", "name: us"),
		"components/seed/app/kustomization.yaml": "patches:\n" + patch("a-us") + patch("all"),
	}
	bundles, err := All(loadLandscape(t, files), catalogue, nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"x": "y"}, objectOf(t, bundles, "ConfigMap", "a-eu").Object["data"])
	assert.Equal(t, map[string]any{"x": "z"}, objectOf(t, bundles, "ConfigMap", "a-us").Object["data"])
	for _, b := range bundles {
		assert.Equal(t, map[string]any{"x": "z"}, objectOf(t, []Bundle{b}, "ConfigMap", "all").Object["data"], "without a namespace it is for any")
	}
	files["components/seed/app/kustomization.yaml"] += patch("a-me")
	_, err = All(loadLandscape(t, files), catalogue, nil)
	require.ErrorContains(t, err, `components/seed/app/kustomization.yaml:4:3: error: patches[2]: matches nothing: the component has no ConfigMap "a-me" of v1; of kind ConfigMap it has a-eu, a-us, all `)
}

// TestOverlayOfADisabledComponent: nothing can match, but faults are still reported.
func TestOverlayOfADisabledComponent(t *testing.T) {
	catalogue := smallCatalogue(t, map[string]string{"garden/app/component.cue": twoBundles + "component: enabled: false\n"})
	l := overlayLandscape(t, map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}'}]\n"})
	found := CheckLandscape(catalogue, l)
	require.Len(t, found, 1)
	assert.Contains(t, found[0].String(), "components/garden/app/kustomization.yaml:1:1: warning: the overlay has no effect: no Garden has the component garden/app, because its settings disable it")
	l = overlayLandscape(t, map[string]string{"kustomization.yaml": "patchs: []\n"})
	assert.Len(t, CheckLandscape(catalogue, l), 1)
}

// TestOverlayOfAComponentThatIsSwitchedOff: the warning about an unused overlay names the switch.
func TestOverlayOfAComponentThatIsSwitchedOff(t *testing.T) {
	catalogue := smallCatalogue(t, map[string]string{
		"garden/app/component.cue": component("cue: ["+oneConfigMap+"]", ""), "garden/flow.cue": appFlow,
		"seed/app/component.cue": component("cue: ["+oneConfigMap+"]", ""), "seed/flow.cue": appFlow,
	})
	const (
		off     = "{components: {garden: {app: {enabled: false}}}}"
		overlay = "commonAnnotations: {x: a}\n"
		garden  = "components/garden/app/kustomization.yaml:1:1: warning: the overlay has no effect: spec.components.garden.app.enabled switches the component off (landscape.yaml:"
		advice  = "; switch it on, or remove the overlay [landscape/overlay]"
	)
	tree := func(spec, file, layer string) fstest.MapFS {
		return fstest.MapFS{
			"base/landscape.yaml": {Data: []byte(landscapeFile(layer))}, "live/landscape.yaml": {Data: []byte(landscapeFile(spec))},
			"live/g.yaml": {Data: []byte(gardenYAML)}, file: {Data: []byte(overlay)},
		}
	}
	const own = "live/components/garden/app/kustomization.yaml"
	for name, test := range map[string]struct {
		tree fstest.MapFS
		want []string
	}{
		"off":                   {tree(off, own, "{}"), []string{garden}},
		"off for another owner": {tree("{components: {seed: {app: {enabled: false}}}}", own, "{}"), nil},
		"on":                    {tree("{components: {garden: {app: {enabled: true}}}}", own, "{}"), nil},
		"not said":              {tree("{components: {garden: {app: {}}}}", own, "{}"), nil},
		"a Seed, off":           {tree("{components: {seed: {app: {enabled: false}}}}", "live/components/seed/app/kustomization.yaml", "{}"), []string{"spec.components.seed.app.enabled switches"}},
		"of a layer":            {tree("{layers: [../base], components: {garden: {app: {enabled: false}}}}", "base/components/garden/app/kustomization.yaml", "{}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, violations, err := landscapes.LoadFS(t.Context(), test.tree, "live", landscapes.Options{})
			require.NoError(t, err)
			require.Empty(t, violations)
			found := CheckLandscape(catalogue, l)
			require.Len(t, found, len(test.want), "%v", found)
			for i, want := range test.want {
				assert.Contains(t, found[i].String(), want)
				assert.Contains(t, found[i].String(), advice)
			}
			_, err = All(l, catalogue, nil)
			assert.NoError(t, err)
		})
	}
}
