// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// smallCatalogue is a catalogue of the given files, plus the files of every catalogue.
func smallCatalogue(t *testing.T, files map[string]string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{"imagevector.yaml": {Data: []byte("images:\n- name: app\n  repository: registry.example.org/app\n  tag: v1.2.3\n")}}
	for _, name := range []string{"cue.mod/module.cue", "inputs.cue", "flow.cue"} {
		data, err := fs.ReadFile(components.FS, name)
		require.NoError(t, err)
		out[name] = &fstest.MapFile{Data: data}
	}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// gardenInput is an almost empty Garden.
func gardenInput() Input {
	return Input{
		Owner:         Owner{Kind: "garden", Name: "local", ControlPlaneNamespace: "garden"},
		Objects:       map[string]map[string]any{"garden": {"spec": map[string]any{"replicas": 2}}},
		TargetVersion: "1.34.1",
	}
}

// renderSmall renders the garden components of a small catalogue.
func renderSmall(t *testing.T, files map[string]string) (Result, error) {
	t.Helper()
	return Render(gardenInput(), Options{Catalogue: smallCatalogue(t, files)})
}

// component writes a component.cue with one direct bundle "app" of the runtime cluster.
func component(source, rest string) string {
	return "package component\n\ncomponent: {\n\tbundles: app: {cluster: \"runtime\", direct: true, source: " + source + "}\n}\n" + rest
}

// with adds files, given as alternating names and texts.
func with(files map[string]string, more ...string) map[string]string {
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// manifest is the output of all bundles as text.
func manifest(t *testing.T, bundles []Bundle) string {
	t.Helper()
	var out strings.Builder
	for _, b := range bundles {
		text, err := ManifestYAML(b.Objects)
		require.NoError(t, err)
		out.WriteString("# " + b.Name + "\n")
		out.Write(text)
	}
	return out.String()
}

// objectOf finds an object by kind and name.
func objectOf(t *testing.T, bundles []Bundle, kind, name string) Object {
	t.Helper()
	for _, b := range bundles {
		for _, o := range b.Objects {
			if o.GetKind() == kind && o.GetName() == name {
				return o
			}
		}
	}
	t.Fatalf("no %s %s in:\n%s", kind, name, manifest(t, bundles))
	return Object{}
}

// loadLandscape reads a landscape from memory; its files must have no errors.
func loadLandscape(t *testing.T, files map[string]string) *landscapes.Landscape {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	l, violations, err := landscapes.LoadFS(t.Context(), tree, ".", landscapes.Options{})
	require.NoError(t, err)
	require.False(t, schemas.HasErrors(violations), "%v", violations)
	return l
}

// landscapeFile is a landscape.yaml with the given spec, in flow style.
func landscapeFile(spec string) string {
	return "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: test\nspec: " + spec + "\n"
}
