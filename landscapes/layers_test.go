// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

func withLayers(layers string) string {
	return "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec:\n  layers: " + layers + "\n"
}

func TestLayersMergeWithTheirPlaces(t *testing.T) {
	landscape, violations := load(t, tree(map[string]string{
		"base/landscape.yaml": "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: base}\nspec:\n  gardenAPI: crd\n  catalogue: {version: 1.0.0}\n",
		"base/ns.yaml":        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  labels:\n    a: one\n    b: two\n  finalizers: [p, q]\n",
		"base/only.yaml":      namespace("only-base"),
		"live/landscape.yaml": "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: live}\nspec:\n  layers: [../base]\n  catalogue: {version: 2.0.0}\n",
		"live/ns.yaml":        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  labels:\n    a: null\n    c: three\n  finalizers: [r]\n",
	}), "live", Options{})
	assert.Empty(t, violations)
	assert.Equal(t, []string{"Namespace x", "Namespace only-base"}, names(landscape))
	assert.Equal(t, []string{"../base", "."}, landscape.Layers)
	assert.Equal(t, "live", landscape.Config.Name)
	assert.Equal(t, "2.0.0", landscape.Config.Spec.Catalogue.Version)
	assert.EqualValues(t, "crd", landscape.Config.Spec.GardenAPI)

	x := landscape.Declarations[0]
	assert.Equal(t, map[string]string{"b": "two", "c": "three"}, x.Object().GetLabels())
	assert.Equal(t, []string{"r"}, x.Object().GetFinalizers())
	assert.Equal(t, "", x.Layer)
	assert.Equal(t, "../base", landscape.Declarations[1].Layer)
	place := func(path string, d Declaration) schemas.Position { return d.Position(path) }
	assert.Equal(t, schemas.Position{File: "../base/ns.yaml", Line: 7, Column: 8}, place("metadata.labels.b", x))
	assert.Equal(t, schemas.Position{File: "ns.yaml", Line: 7, Column: 8}, place("metadata.labels[c]", x))
	assert.Equal(t, schemas.Position{File: "ns.yaml", Line: 8, Column: 16}, place("metadata.finalizers[0]", x))
	assert.Equal(t, schemas.Position{File: "ns.yaml", Line: 8, Column: 15}, place("metadata.finalizers[1]", x), "the list of the base is replaced")
}

func TestInvalidLayers(t *testing.T) {
	fsys := tree(map[string]string{
		"base/ns.yaml":         namespace("x"),
		"file":                 "",
		"a/landscape.yaml":     withLayers("[../b]"),
		"b/landscape.yaml":     withLayers("[../a]"),
		"twice/landscape.yaml": withLayers("[../base, ../base]"),
		"out/landscape.yaml":   withLayers("[../../elsewhere, /etc, ../missing, ../file, ../link]"),
		"deep/landscape.yaml":  withLayers("[base]"),
		"deep/base/ns.yaml":    namespace("inside"),
	})
	fsys["link"] = &fstest.MapFile{Data: []byte("base"), Mode: fs.ModeSymlink | 0o777}
	tests := map[string][]string{
		"a":     {"../b/landscape.yaml:5:12 Invalid the layer \"../a\" builds on this landscape: layers must not form a cycle"},
		"twice": {"landscape.yaml:5:21 Invalid the layer \"../base\" is listed twice"},
		"out": {
			"landscape.yaml:5:12 Invalid the layer \"../../elsewhere\" leaves the repository",
			"landscape.yaml:5:29 Invalid the layer \"/etc\" must be a relative path with slashes",
			"landscape.yaml:5:35 Invalid the layer \"../missing\" does not exist",
			"landscape.yaml:5:47 Invalid the layer \"../file\" is not a folder",
			"landscape.yaml:5:56 Invalid the layer \"../link\" is, or lies behind, a symbolic link",
		},
		"deep": nil,
	}
	for dir, want := range tests {
		t.Run(dir, func(t *testing.T) {
			_, violations := load(t, fsys, dir, Options{})
			assert.Equal(t, want, violations)
		})
	}
}

// TestLinksOnDisk: links that leave the landscape are reported and not read.
func TestLinksOnDisk(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	require.NoError(t, os.WriteFile(outside, []byte(namespace("outside")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "landscape.yaml"), []byte(bareConfig), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(namespace("a")), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "absolute.yaml")))
	require.NoError(t, os.Symlink("../../etc", filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink("a.yaml", filepath.Join(dir, "inside.yaml")))
	require.NoError(t, os.Symlink("loop.yaml", filepath.Join(dir, "loop.yaml")))

	landscape, violations, err := Load(t.Context(), dir, Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"Namespace a"}, names(landscape))
	var files []string
	for _, v := range violations {
		files = append(files, v.File)
		assert.Equal(t, "landscape/link", v.Rule)
	}
	assert.Equal(t, []string{"absolute.yaml", "folder", "loop.yaml"}, files)
}

// TestLoadFindsTheRepository: layers may be anywhere in the repository, whose root has .git.
func TestLoadFindsTheRepository(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "", "shared/ns.yaml": namespace("shared"), "landscapes/live/landscape.yaml": withLayers("[../../shared]"),
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	landscape, violations, err := Load(t.Context(), filepath.Join(root, "landscapes", "live"), Options{})
	require.NoError(t, err)
	assert.Empty(t, violations)
	assert.Equal(t, []string{"Namespace shared"}, names(landscape))

	_, violations, err = Load(t.Context(), filepath.Join(root, "landscapes", "live"), Options{Root: filepath.Join(root, "landscapes")})
	require.NoError(t, err)
	require.Len(t, violations, 1)
	assert.Contains(t, violations[0].Message, "leaves the repository")
}

// TestRemovalsInLayers: null removes a field of lower layers, and a misspelt null does nothing.
func TestRemovalsInLayers(t *testing.T) {
	for name, test := range map[string]struct{ over, want string }{
		"there":                      {"labels: {team: null}", ""},
		"misspelt":                   {"labels: {taem: null}", `null removes a field of lower layers, but none has this field; did you mean "team"?`},
		"a whole part":               {"label: null", `did you mean "labels"?`},
		"nothing like it":            {"labels: {other: null}", ""},
		"both, so that none is lost": {"labels: {team: null, taem: null}", ""},
		"changed beside it":          {"labels: {team: b, taem: null}", ""},
		"of a new part":              {"annotations: {taem: null}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations := load(t, tree(map[string]string{
				"base/landscape.yaml": withLayers("[]"), "live/landscape.yaml": withLayers("[../base]"),
				"base/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x, labels: {team: a}}\n",
				"live/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x, " + test.over + "}\n",
			}), "live", Options{})
			if test.want == "" {
				assert.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1)
			assert.Contains(t, violations[0], test.want)
		})
	}
}
