// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

func TestRender(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)

	o := pergola(t, "render", dir)
	require.Equal(t, 0, o.code, "%+v", o)
	assert.Empty(t, o.stderr)
	assert.Contains(t, o.stdout, "# cluster local, seed local, component seed/system, bundle system\n---\napiVersion: ")
	assert.Contains(t, o.stdout, "# cluster local, seed local, component seed/crds, bundle crds-gardener\n")
	assert.Equal(t, o.stdout, pergola(t, "render", dir).stdout)

	all := decode[[]render.Bundle](t, pergola(t, "render", dir, "-o", "json"))
	assert.Greater(t, len(all), 4)
	withOrigins := decode[[]struct{ Origins []render.Origin }](t, pergola(t, "render", dir, "-o", "json", "--component", "seed/namespace"))
	assert.Equal(t, "components/seed/namespace/component.cue", withOrigins[0].Origins[0].File)
	for name, test := range map[string]struct {
		args []string
		keep func(render.Bundle) bool
	}{
		"component":       {[]string{"--component", "seed/system"}, func(b render.Bundle) bool { return b.Component == "seed/system" }},
		"cluster":         {[]string{"--cluster", "local"}, func(render.Bundle) bool { return true }},
		"kind of owner":   {[]string{"--owner", "seed"}, func(render.Bundle) bool { return true }},
		"owner":           {[]string{"--owner", "seed/local"}, func(render.Bundle) bool { return true }},
		"both":            {[]string{"--owner", "seed/local", "--component", "seed/crds"}, func(b render.Bundle) bool { return b.Component == "seed/crds" }},
		"another owner":   {[]string{"--owner", "shoot/local"}, nil},
		"other component": {[]string{"--component", "seed/nope"}, nil},
		"other cluster":   {[]string{"--cluster", "nope"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergola(t, append([]string{"render", dir, "-o", "json"}, test.args...)...)
			if test.keep == nil {
				assert.Equal(t, 2, o.code)
				assert.Contains(t, decode[errorResult](t, o).Error.Message, test.args[0]+": there is no ")
				assert.Contains(t, o.stderr, fmt.Sprintf("%q", test.args[1]))
				return
			}
			require.Equal(t, 0, o.code, "%+v", o)
			var want, got []string
			for _, b := range all {
				if test.keep(b) {
					want = append(want, b.ID())
				}
			}
			for _, b := range decode[[]render.Bundle](t, o) {
				got = append(got, b.ID())
			}
			assert.Equal(t, want, got)
		})
	}
}

func TestRenderToAFolder(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "new", "folder")
	smallLandscape(t, dir)
	o := pergola(t, "render", dir, "--component", "seed/namespace", "--output-dir", out)
	require.Equal(t, commandResult{stderr: "Rendered: 3 files written, 0 removed, 0 unchanged in " + out + ".\n"}, o)
	o = pergola(t, "render", dir, "--component", "seed/namespace", "--output-dir", out)
	require.Equal(t, commandResult{stderr: "Rendered: 0 files written, 0 removed, 3 unchanged in " + out + ".\n"}, o)
	data, err := os.ReadFile(filepath.Join(out, "local", "garden", "garden-namespace", "namespace-garden.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(data), "kind: Namespace\n")
	assert.FileExists(t, filepath.Join(out, "local", "garden", "garden-namespace", "bundle.yaml"))

	// Another render replaces these files, but never touches files that no render wrote.
	o = pergola(t, "render", dir, "--component", "seed/system", "--output-dir", out)
	require.Zero(t, o.code)
	assert.Contains(t, o.stderr, ", 3 removed, 0 unchanged in ")
	assert.NoDirExists(t, filepath.Join(out, "local", "garden", "garden-namespace"))
	assert.FileExists(t, filepath.Join(out, "local", "garden", "system", "bundle.yaml"))
	writeFile(t, out, "local/garden/system/mine.yaml", "a: b\n")
	o = pergola(t, "render", dir, "--component", "seed/namespace", "--output-dir", out)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "contains files that are not from a recorded render (local/garden/system/mine.yaml): give an empty folder")
	assert.FileExists(t, filepath.Join(out, "local", "garden", "system", "bundle.yaml"))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, inside := range []string{dir, filepath.Join(dir, "rendered", "new"), filepath.Join(link, "x")} {
		o = pergola(t, "render", dir, "--output-dir", inside)
		assert.Equal(t, 2, o.code)
		assert.Contains(t, o.stderr, "is inside the landscape")
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, filepath.Dir(file), "file", "")
	o = pergola(t, "render", dir, "--component", "seed/namespace", "--output-dir", file)
	assert.Equal(t, 2, o.code)
}

func TestRenderFindings(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(dir string)
		code   int
		stderr string
	}{
		"invalid declaration": {func(dir string) { replaceIn(t, dir, "seed.yaml", "    region: local\n", "    regoin: local\n") }, 1, "Error: the landscape is not valid: nothing was done\n"},
		"another catalogue":   {func(dir string) { replaceIn(t, dir, "landscape.yaml", "version: ", "version: 9") }, 1, "landscape.yaml:7:14: error: Landscape small: spec.catalogue.version: the landscape needs catalogue 9"},
		"unknown component": {func(dir string) {
			replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  components:\n    seed:\n      systen: {enabled: false}\n")
		}, 1, "landscape.yaml:8:7: error: Landscape small: spec.components.seed.systen: no component seed/systen in the catalogue"},
		"overlay that fits nothing": {func(dir string) {
			writeFile(t, dir, "components/seed/system/kustomization.yaml", "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/x\", \"value\": 1}]', target: {kind: Nothing}}]\n")
		}, 1, "components/seed/system/kustomization.yaml:1:64: error: patches[0].target: matches nothing: the component has no Nothing; its kinds are PriorityClass"},
		"no landscape": {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "landscape.yaml"))) }, 2, "is not a landscape"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			smallLandscape(t, dir)
			test.spoil(dir)
			o := pergola(t, "render", dir)
			assert.Equal(t, test.code, o.code)
			assert.Empty(t, o.stdout)
			assert.Contains(t, o.stderr, test.stderr)
		})
	}
}

// TestNoCatalogueIsAWarning: without a catalogue version the rendered objects can change with the
// program.
func TestNoCatalogueIsAWarning(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	writeFile(t, dir, "landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: small\n")
	o := pergola(t, "render", dir, "--component", "seed/namespace")
	assert.Equal(t, 0, o.code)
	assert.Contains(t, o.stderr, "landscape.yaml:1:1: warning: Landscape small: spec.catalogue: names no version of the catalogue, so the next")
	o = pergola(t, "validate", dir)
	assert.Equal(t, 0, o.code)
	assert.Contains(t, o.stdout, "write catalogue: {version: "+components.Version+"} [landscape/catalogue]")
	assert.Equal(t, 1, pergola(t, "validate", dir, "--strict").code)
}
