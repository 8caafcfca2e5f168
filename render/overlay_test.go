package render

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// twoBundles is a component with two bundles of one object each.
const twoBundles = `package component

component: bundles: {
	one: {cluster: "runtime", direct: true, source: cue: [` + oneConfigMap + `]}
	two: {cluster: "runtime", direct: true, source: cue: [{apiVersion: "v1", kind: "Secret", metadata: {name: "s", namespace: "garden", ` + hashedMark + `}, stringData: a: "1"}]}
}
`

// overlaid renders twoBundles with overlays, each a folder of files.
func overlaid(t *testing.T, overlays ...map[string]string) (Result, error) {
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
	res, err := overlaid(t, map[string]string{"kustomization.yaml": "patches: [{path: p.yaml}]\n", "p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: garden}\ndata: {x: z}\n"})
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
	res, err := overlaid(t, map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": added + "  annotations: {render.pergola.dev/bundle: two}\n"})
	require.NoError(t, err)
	require.Len(t, res.Bundles[1].Objects, 2)
	more := objectOf(t, res.Bundles[1:], "ConfigMap", "more")
	assert.Empty(t, more.GetAnnotations())
	assert.Equal(t, "components/garden/app/more.yaml overlaid by components/garden/app", more.Origin.String())

	_, err = overlaid(t, map[string]string{"kustomization.yaml": "resources: [more.yaml]\n", "more.yaml": added})
	require.ErrorContains(t, err, "overlay components/garden/app adds ConfigMap more: say which bundle it belongs to by the annotation render.pergola.dev/bundle (one of one, two)")
}

func TestOverlayRemoves(t *testing.T) {
	_, err := overlaid(t, map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, $patch: delete}'}]\n"})
	require.ErrorContains(t, err, "bundle one rendered no object")
}

func TestOverlaysOfLayersAreAppliedInOrder(t *testing.T) {
	patch := func(value string) map[string]string {
		return map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, data: {x: " + value + ", " + value + ": set}}'}]\n"}
	}
	res, err := overlaid(t, patch("base"), patch("top"))
	require.NoError(t, err)
	a := objectOf(t, res.Bundles, "ConfigMap", "a")
	assert.Equal(t, map[string]any{"x": "top", "base": "set", "top": "set"}, a.Object["data"])
	assert.Equal(t, "components/garden/app/component.cue:4 overlaid by ../base/components/garden/app, components/garden/app", a.Origin.String())
}

func TestOverlayErrors(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"no match": {map[string]string{"kustomization.yaml": "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/data/x\", \"value\": \"z\"}]', target: {kind: ConfigMap, name: other}}]\n"},
			"overlay components/garden/app changes nothing: its patches match no object of the component"},
		"strategic patch of nothing": {map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: garden}}'}]\n"},
			"overlay components/garden/app: "},
		"same as before": {map[string]string{"kustomization.yaml": "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: garden}, data: {x: \"y\"}}'}]\n"},
			"overlay components/garden/app changes nothing"},
		"remote":        {map[string]string{"kustomization.yaml": "resources: ['https://example.org/x']\n"}, `components/garden/app/kustomization.yaml: remote base "https://example.org/x"`},
		"parent":        {map[string]string{"kustomization.yaml": "resources: [../../secret.yaml]\n"}, "overlay components/garden/app: kustomize: build components/garden/app: "},
		"unknown field": {map[string]string{"kustomization.yaml": "patchs: []\n"}, "overlay components/garden/app: "},
		"secret": {map[string]string{"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: garden}, stringData: {p: hunter2}}\n"},
			"overlay components/garden/app sets data of Secret t"},
		"secret in a broken patch": {map[string]string{"kustomization.yaml": "patches:\n- patch: |\n    kind: Secret\n    stringData: {p: hunter2\n"}, "the content is not shown"},
		"no file":                  {map[string]string{"readme.md": ""}, "overlay components/garden/app: kustomization.yaml is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := overlaid(t, test.files)
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "zz-component")
		})
	}
}
