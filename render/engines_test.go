// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	oneConfigMap = `{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "a", namespace: "garden"}, data: x: "y"}`
	chartYAML    = "apiVersion: v2\nname: app\nversion: 0.1.0\n"
	plainYAML    = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
)

func TestCUEObjects(t *testing.T) {
	res, err := renderSmall(t, map[string]string{
		"garden/app/component.cue": component("cue: _objects", ""),
		"garden/app/objects.cue": `package component

_objects: [
	{
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: {name: "b", namespace: owner.controlPlaneNamespace}
		data: {replicas: "\(garden.spec.replicas)", image: images.app, runtime: "\(kubernetes.runtime.minor)", target: kubernetes.target.version}
	},
	` + oneConfigMap + `,
]
`,
	})
	require.NoError(t, err)
	require.Len(t, res.Bundles, 1)
	b := res.Bundles[0]
	require.Len(t, b.Objects, 2)
	assert.Equal(t, []string{"a", "b"}, []string{b.Objects[0].GetName(), b.Objects[1].GetName()}, "sorted")
	assert.Equal(t, "components/garden/app/objects.cue:10", b.Objects[0].Origin.String())
	assert.Equal(t, "components/garden/app/objects.cue:6", b.Objects[1].Origin.String())
	assert.Equal(t, map[string]any{"replicas": "2", "image": "registry.example.org/app:v1.2.3", "runtime": "36", "target": "1.34.1"}, b.Objects[1].Object["data"])
	assert.Equal(t, "garden/app", b.Component)
	assert.Equal(t, "garden", b.Namespace)
	assert.Equal(t, "garden local/app", b.ID())
}

func TestHelmChart(t *testing.T) {
	res, err := renderSmall(t, map[string]string{
		"garden/app/component.cue":    component(`helm: {chart: "chart", values: {name: "a", n: garden.spec.replicas}}`, ""),
		"garden/app/chart/Chart.yaml": chartYAML,
		"garden/app/chart/templates/a.yaml": plainYAML + "  namespace: {{ .Release.Namespace }}\n" +
			`data: {"release": {{ .Release.Name }}, "minor": {{ .Capabilities.KubeVersion.Minor | quote }}, "count": {{ .Values.n | quote }}, "helped": {{ include "help" . }}}` + "\n",
		"garden/app/chart/templates/b.yaml":    "{{ if .Values.wanted }}kind: Broken{{ end }}",
		"garden/app/chart/templates/_help.tpl": `{{ define "help" }}yes-helped{{ end }}`,
		"garden/app/chart/templates/NOTES.txt": "Thank you for installing {{ .Release.Name }}",
		"garden/app/chart/values.yaml":         "wanted: false\n",
	})
	require.NoError(t, err)
	require.Len(t, res.Bundles[0].Objects, 1)
	o := res.Bundles[0].Objects[0]
	assert.Equal(t, "components/garden/app/chart/templates/a.yaml", o.Origin.String())
	assert.Equal(t, map[string]any{"release": "local", "minor": "36", "count": "2", "helped": "yes-helped"}, o.Object["data"])
	assert.Equal(t, "garden", o.GetNamespace())
}

// TestHelmKubernetesVersion: a chart for the virtual garden sees its version, not that of the
// runtime cluster.
func TestHelmKubernetesVersion(t *testing.T) {
	files := map[string]string{
		"garden/app/component.cue": "package component\n\ncomponent: bundles: {\n" +
			"\ta: {cluster: \"runtime\", source: helm: {chart: \"/charts/v\", values: {}}}\n" +
			"\tb: {cluster: \"virtual\", source: helm: {chart: \"/charts/v\", values: {}}}\n}\n",
		"charts/v/Chart.yaml":        chartYAML,
		"charts/v/templates/cm.yaml": plainYAML + "data:\n  v: {{ .Capabilities.KubeVersion.Version }}\n",
	}
	in := gardenInput()
	in.Facts.Clusters = map[string]ClusterFact{ClusterRuntime: {KubernetesVersion: "1.33.7"}}
	res, err := Render(in, Options{Catalogue: smallCatalogue(t, files)})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"v": "v1.33.7"}, res.Bundles[0].Objects[0].Object["data"])
	assert.Equal(t, map[string]any{"v": "v1.34.1"}, res.Bundles[1].Objects[0].Object["data"])
}

func TestKustomizeFolder(t *testing.T) {
	res, err := renderSmall(t, map[string]string{
		"garden/app/component.cue":           component(`kustomize: "top"`, ""),
		"garden/app/top/kustomization.yaml":  "namePrefix: p-\nresources: [../base]\npatches:\n- patch: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {\"url\": \"https://example.org/?ref=1\"}}]'\n  target: {kind: ConfigMap}\n",
		"garden/app/base/kustomization.yaml": "resources: [a.yaml]\n",
		"garden/app/base/a.yaml":             plainYAML,
	})
	require.NoError(t, err)
	o := objectOf(t, res.Bundles, "ConfigMap", "p-a")
	assert.Equal(t, "components/garden/app/base/a.yaml", o.Origin.String())
	assert.Empty(t, o.GetAnnotations(), "krusty's own annotations are taken off")
	assert.Equal(t, map[string]any{"url": "https://example.org/?ref=1"}, o.Object["data"], "a URL in an inline patch is no remote base")
}

// TestKustomizeTakesImagesOfTheVector: images are replaced only if the component lists them, by
// their bare names, and with overrides of the landscape.
func TestKustomizeTakesImagesOfTheVector(t *testing.T) {
	files := map[string]string{
		"garden/app/component.cue":      component(`kustomize: "."`, "component: images: [\"app\"]\n"),
		"garden/app/kustomization.yaml": "resources: [a.yaml]\n",
		"garden/app/a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: garden}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n" +
			"      initContainers: [{name: i, image: app}]\n      containers: [{name: c, image: app}, {name: d, image: other}, {name: e, image: \"app:v9\"}]\n",
	}
	res, err := Render(gardenInput(), Options{Catalogue: smallCatalogue(t, files), ImageOverrides: []Image{{Name: "app", Tag: "v2"}}})
	require.NoError(t, err)
	o := objectOf(t, res.Bundles, "Deployment", "a")
	var images []string
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := nestedField(o.Object, "spec", "template", "spec", list)
		for _, c := range containers.([]any) {
			images = append(images, c.(map[string]any)["image"].(string))
		}
	}
	assert.Equal(t, []string{"registry.example.org/app:v2", "registry.example.org/app:v2", "other", "app:v9"}, images)
}

func TestDefinitionsOfOurAPI(t *testing.T) {
	res, err := renderSmall(t, map[string]string{"garden/app/component.cue": component(`crds: ["seeds.core.gardener.cloud", "resources.gardener.cloud"]`, "")})
	require.NoError(t, err)
	require.Len(t, res.Bundles[0].Objects, 2)
	assert.Equal(t, "managedresources.resources.gardener.cloud", res.Bundles[0].Objects[0].GetName())
	seed := res.Bundles[0].Objects[1]
	assert.Equal(t, "seeds.core.gardener.cloud", seed.GetName())
	assert.Equal(t, "api/crds/core.gardener.cloud_seeds.yaml", seed.Origin.String())
	assert.NotContains(t, seed.Object, "status", "status is the API server's")
}

// TestEngineErrors: all faults of a component are reported with the file, and with the line if
// known.
func TestEngineErrors(t *testing.T) {
	const app = "garden local, component garden/app: "
	chart := func(template string) map[string]string {
		return map[string]string{
			"garden/app/component.cue":    component(`helm: {chart: "chart", values: {}}`, ""),
			"garden/app/chart/Chart.yaml": chartYAML, "garden/app/chart/templates/a.yaml": template,
		}
	}
	kustomize := func(text string) map[string]string {
		return map[string]string{"garden/app/component.cue": component(`kustomize: "."`, ""), "garden/app/kustomization.yaml": text}
	}
	cue := func(source, rest string) map[string]string {
		return map[string]string{"garden/app/component.cue": component(source, rest)}
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"cue: syntax": {cue("cue: _objects", "_objects: [\n"+oneConfigMap+",\n"),
			"components/garden/app/component.cue:7:98: expected ']', found 'EOF'"},
		"cue: unknown reference": {cue("cue: [_x]", ""),
			`components/garden/app/component.cue:4:65: component.bundles.app.source.cue: reference "_x" not found`},
		"cue: not concrete": {cue("cue: [{apiVersion: \"v1\", kind: \"ConfigMap\",\n\t\tmetadata: name: string}]", ""),
			"components/garden/app/component.cue:5:19: component.bundles.app.source.cue.0.metadata.name: incomplete value string"},
		"cue: conflict": {cue("cue: [{apiVersion: \"v1\", kind: \"ConfigMap\",\n\t\tmetadata: name: \"a\" & \"b\"}]", ""),
			`components/garden/app/component.cue:5:25: component.bundles.app.source.cue.0.metadata.name: conflicting values "b" and "a"`},
		"cue: no kind": {cue(`cue: [{metadata: name: "a"}]`, ""),
			"bundle app: object /a at components/garden/app/component.cue:4: apiVersion, kind and metadata.name are required"},
		"cue: no name": {cue(`cue: [{apiVersion: "v1", kind: "ConfigMap"}]`, ""),
			"bundle app: object ConfigMap/ at components/garden/app/component.cue:4: apiVersion, kind and metadata.name are required"},
		"cue: no such field of the declaration": {cue("cue: [{apiVersion: \"v1\", kind: \"ConfigMap\",\n\t\tmetadata: name: garden.spec.nope}]", ""),
			"components/garden/app/component.cue:5:31: component.bundles.app.source.cue.0.metadata.name: undefined field: nope"},
		"cue: no object": {cue("cue: []", ""), "components/garden/app/component.cue:4:51: bundle app rendered no object: disable the component instead"},

		"component: unknown field": {cue("cue: ["+oneConfigMap+"]", "component: imagez: []\n"),
			"components/garden/app/component.cue:6:12: component.imagez: field not allowed"},
		"component: another cluster": {map[string]string{"garden/app/component.cue": "package component\ncomponent: bundles: app: {cluster: \"moon\", source: cue: []}\n"},
			`components/garden/app/component.cue:2:36: component.bundles.app.cluster: conflicting values "runtime" and "moon"`},
		"component: two engines": {cue("{cue: ["+oneConfigMap+`], kustomize: "."}`, ""),
			`component.cue:4:175: component.bundles.app.source.kustomize: field not allowed: the source is cue already`},
		"component: no source": {map[string]string{"garden/app/component.cue": "package component\ncomponent: bundles: app: cluster: \"runtime\"\n"},
			"bundle app: components/garden/app/component.cue:2:21: source names no engine: want one of cue, helm, kustomize, crds"},
		"component: another package": {map[string]string{"garden/app/component.cue": "package other\n"},
			"components/garden/app/component.cue: package is other, want component"},
		"component: unknown image": {cue("cue: ["+oneConfigMap+"]", "component: images: [\"nope\"]\n"),
			"components/garden/app/component.cue:6:21: image nope is not in the image vector for these Kubernetes versions"},

		"crds: unknown": {cue(`crds: ["nope"]`, ""), `components/garden/app/component.cue:4:66: no CustomResourceDefinition for "nope" in our API: known groups are core.gardener.cloud, `},

		"helm: missing value": {chart(plainYAML + "data:\n  v: {{ .Values.name }}\n"),
			`bundle app: components/garden/app/chart/templates/a.yaml:6:16: helm: executing "components/garden/app/chart/templates/a.yaml" at <.Values.name>: map has no entry for key "name"`},
		"helm: failing template": {chart("apiVersion: v1\nkind: {{ fail \"needs a name\" }}\n"), "bundle app: components/garden/app/chart/templates/a.yaml:2:10: helm: needs a name"},
		"helm: required value":   {chart("apiVersion: v1\nkind: x\nmetadata:\n  name: {{ required \"give a name\" nil }}\n"), "components/garden/app/chart/templates/a.yaml:4:12: helm: give a name"},
		"helm: broken template":  {chart("apiVersion: v1\nkind: {{ nope }\n"), `components/garden/app/chart/templates/a.yaml:2:1: helm: function "nope" not defined`},
		"helm: included template": {with(chart(`{{ include "help" . }}`), "garden/app/chart/templates/_help.tpl", "{{ define \"help\" }}\n{{ .Values.nope }}{{ end }}"),
			"components/garden/app/chart/templates/_help.tpl:2:11: helm: "},
		"helm: broken YAML": {chart("apiVersion: v1\n  kind: x\n"),
			`components/garden/app/chart/templates/a.yaml:2:3: helm: line 2 of the output, "kind: x": this is not YAML: the line is indented by 2 spaces, but the field before it already has a value`},
		"helm: broken YAML of a loop": {chart("{{ range list 1 2 }}\n  a: b\n c: d\n{{ end }}"), `components/garden/app/chart/templates/a.yaml:`},
		"helm: no object":             {chart("a: v1\n"), `components/garden/app/chart/templates/a.yaml:1:1: helm: line 1 of the output, "a: v1": not an object: apiVersion and kind are required`},
		"helm: no chart":              {cue(`helm: {chart: "nope", values: {}}`, ""), "components/garden/app/component.cue:4:73: helm: the chart components/garden/app/nope cannot be read: "},
		"helm: leaves":                {cue(`helm: {chart: "../../../etc", values: {}}`, ""), `components/garden/app/component.cue:4:73: helm: path "../../../etc" leaves the catalogue`},
		"helm: leaves from top":       {cue(`helm: {chart: "/../etc", values: {}}`, ""), `path "/../etc" leaves the catalogue`},

		"kustomize: missing file": {kustomize("resources: [b.yaml]\n"), `components/garden/app/kustomization.yaml:1:13: resources[0]: there is no file "b.yaml" in this folder`},
		"kustomize: same object twice": {with(kustomize("resources: [a.yaml, b.yaml]\n"), "garden/app/a.yaml", plainYAML, "garden/app/b.yaml", plainYAML),
			"components/garden/app/kustomization.yaml:1:1: resources: ConfigMap a exists twice: patch the existing object, or remove one of them"},
		"kustomize: broken patch": {with(kustomize("resources: [a.yaml]\npatches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: y}}'\n- patch: '[{op: remove, path: /spec}]'\n  target: {kind: ConfigMap}\n"), "garden/app/a.yaml", plainYAML),
			"components/garden/app/kustomization.yaml:4:3: patches[1]: "},
		"kustomize: broken object": {with(kustomize("resources: [a.yaml]\n"), "garden/app/a.yaml", "# x\n---\na: [\n"), "components/garden/app/a.yaml:3:"},
		"kustomize: unknown field": {kustomize("namePrefx: p-\n"), `components/garden/app/kustomization.yaml:1:1: namePrefx: the field "namePrefx" does not exist; did you mean "namePrefix"?`},
		"kustomize: no folder":     {cue(`kustomize: "nope"`, ""), "bundle app: components/garden/app/component.cue:4:70: there is no folder components/garden/app/nope"},
		"kustomize: leaves":        {cue(`kustomize: "../../../x"`, ""), `path "../../../x" leaves the catalogue`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := renderSmall(t, test.files)
			require.Error(t, err)
			assert.Contains(t, err.Error(), app)
			assert.Contains(t, err.Error(), test.want)
		})
	}
}

// TestKustomizeStaysInItsFolder: krusty uses git and HTTP for names that look remote, even on a
// file system in memory. Every field that names a file is checked before.
func TestKustomizeStaysInItsFolder(t *testing.T) {
	tests := map[string]string{
		"URL":                "resources: ['https://example.org/base?ref=main']",
		"ssh":                "resources: ['ssh://example.org/base']",
		"file":               "resources: ['file:///etc']",
		"GitHub":             "resources: [github.com/org/repo//base]",
		"GitHub, upper case": "resources: [GitHub.com/org/repo]",
		"GitHub, colon":      "resources: ['github.com:org/repo']",
		"user and host":      "resources: ['git@example.org:org/repo.git']",
		"another user":       "resources: ['me@example.org:org/repo.git']",
		"forced protocol":    "resources: ['git::https://example.org/repo']",
		"bases":              "bases: ['https://example.org/base']",
		"components":         "components: ['https://example.org/base']",
		"crds":               "crds: ['https://example.org/crd.yaml']",
		"configurations":     "configurations: ['https://example.org/c.yaml']",
		"openapi":            "openapi: {path: 'https://example.org/schema.json'}",
		"patch":              "patches: [{path: 'https://example.org/p.yaml'}]",
		"old patch":          "patchesStrategicMerge: ['https://example.org/p.yaml']",
		"json patch":         "patchesJson6902: [{path: 'https://example.org/p.yaml', target: {kind: X, name: x}}]",
		"replacement":        "replacements: [{path: 'https://example.org/r.yaml'}]",
		"generator":          "configMapGenerator: [{name: x, files: ['key=https://example.org/f']}]",
		"generator env":      "secretGenerator: [{name: x, envs: ['https://example.org/f']}]",
		"nested":             "",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"garden/app/component.cue": component(`kustomize: "."`, ""), "garden/app/kustomization.yaml": text + "\n"}
			if text == "" {
				files["garden/app/kustomization.yaml"] = "resources: [sub]\n"
				files["garden/app/sub/Kustomization"] = "resources: ['https://example.org/base']\n"
			}
			_, err := renderSmall(t, files)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "components/garden/app/")
			assert.Regexp(t, `ustomization(.yaml)?:1:\d+: .* is not in this folder: remote files are not supported`, err.Error())
		})
	}
	for name, text := range map[string]string{
		"helm": "helmCharts: [{name: x}]", "generator": "generators: [g.yaml]", "transformer": "transformers: [g.yaml]", "validator": "validators: [g.yaml]",
	} {
		t.Run("plugin "+name, func(t *testing.T) {
			_, err := renderSmall(t, map[string]string{"garden/app/component.cue": component(`kustomize: "."`, ""), "garden/app/kustomization.yaml": text + "\n"})
			require.ErrorContains(t, err, "components/garden/app/kustomization.yaml:1:1: ")
		})
	}
	t.Run("parent folder", func(t *testing.T) {
		_, err := renderSmall(t, map[string]string{
			"garden/app/component.cue": component(`kustomize: "."`, ""), "garden/app/kustomization.yaml": "resources: [../other/a.yaml]\n",
			"garden/other/a.yaml": plainYAML,
		})
		require.ErrorContains(t, err, `components/garden/app/kustomization.yaml:1:13: resources[0]: "../other/a.yaml" leaves the folder`)
	})
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, err := renderSmall(t, map[string]string{
		"garden/a/component.cue": component("cue: [_x]", ""),
		"garden/b/component.cue": component(`crds: ["nope"]`, ""),
		"garden/c/component.cue": component("cue: ["+oneConfigMap+"]", ""),
	})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "component garden/a: ")
	assert.Contains(t, err.Error(), "component garden/b: ")
	assert.NotContains(t, err.Error(), "component garden/c: ")
}

func TestDecodeYAML(t *testing.T) {
	objects, err := DecodeYAML("f.yaml", []byte("# comment\n---\n"+plainYAML+"---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n- {apiVersion: v1, kind: Secret, metadata: {name: c}}\n"))
	require.NoError(t, err)
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+"/"+o.GetName()+" "+o.Origin.String())
	}
	assert.Equal(t, []string{"ConfigMap/a f.yaml:3", "Secret/b f.yaml:9", "Secret/c f.yaml:9"}, got)
	_, err = DecodeYAML("f.yaml", []byte(plainYAML+"---\na: [\n"))
	assert.ErrorContains(t, err, "f.yaml:6:4: this is not YAML: the bracket [ that opens here is not closed")
}
