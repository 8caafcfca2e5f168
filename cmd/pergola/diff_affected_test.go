// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
)

// landscapePlans is the JSON output for several landscapes.
type landscapePlans struct {
	Landscapes []struct {
		Name string `json:"name"`
		change.Plan
	} `json:"landscapes"`
}

func (r landscapePlans) names() []string {
	var out []string
	for _, l := range r.Landscapes {
		out = append(out, l.Name)
	}
	return out
}

// addLayeredLandscapes adds landscapes that use the small one as a layer.
func addLayeredLandscapes(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		writeFile(t, filepath.Dir(dir), name+"/landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: "+name+
			"\nspec:\n  layers: [../landscape]\n  catalogue:\n    version: "+components.Version+"\n")
	}
}

// TestDiffOfSeveralLandscapes: a change of a base results in one report about all landscapes on it.
func TestDiffOfSeveralLandscapes(t *testing.T) {
	dir, commit := repository(t)
	addLayeredLandscapes(t, dir, "one", "two")
	root := filepath.Dir(dir)
	smallLandscape(t, filepath.Join(root, "alone"))
	commit()
	smallLandscape(t, filepath.Join(root, "again"))
	t.Chdir(root)

	o := pergola(t, "diff", "one", "two", "alone", "-o", "json")
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Equal(t, []string{"one", "two", "small"}, decode[landscapePlans](t, o).names(), "those that were asked for are there, changed or not, by their names")
	o = pergola(t, "diff", "one", "alone", "again", "-o", "json")
	assert.Equal(t, []string{"one", "small in alone", "small in again"}, decode[landscapePlans](t, o).names(), "two of one name")
	require.NoError(t, os.RemoveAll(filepath.Join(root, "again")))
	o = pergola(t, "diff", "--all", "-o", "json")
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Empty(t, decode[landscapePlans](t, o).Landscapes)

	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	o = pergola(t, "diff", "--all", "-o", "json")
	assert.Equal(t, 1, o.code, "%+v", o)
	got := decode[landscapePlans](t, o)
	assert.Equal(t, []string{"one", "two"}, got.names(), "the base is part of those that build on it")
	for _, l := range got.Landscapes {
		assert.Equal(t, 1, l.Summary.Change, l.Name)
	}
	o = pergola(t, "diff", "--all", "alone")
	assert.Equal(t, 0, o.code, "%+v", o)

	replaceIn(t, root, "two/landscape.yaml", "name: two", "nam: two")
	o = pergola(t, "diff", "--all", "-o", "markdown")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Some project")
	assert.Contains(t, o.stdout, "it could not be compared: two: the landscape is not valid")
	assert.Contains(t, o.stdout, " Not compared: two.")
	assert.Contains(t, o.stdout, "two/landscape.yaml:")

	o = pergola(t, "diff", "--all", filepath.Join(root, "nothing"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "has no landscape, which is a folder with a file landscape.yaml")
	assert.Equal(t, 2, pergola(t, "diff").code)
	assert.Equal(t, 2, pergola(t, "diff", "--all", "one", "two").code)
	assert.Equal(t, 2, pergola(t, "diff", "--all", "--live").code)
}

// TestDiffFromMergeBase: commits of the other branch after the merge base are not a
// difference.
func TestDiffFromMergeBase(t *testing.T) {
	dir, commit := repository(t)
	repo, err := git.PlainOpen(filepath.Dir(dir))
	require.NoError(t, err)
	tree, err := repo.Worktree()
	require.NoError(t, err)
	require.NoError(t, tree.Checkout(&git.CheckoutOptions{Branch: plumbing.NewBranchReferenceName("feature"), Create: true}))
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	commit()
	require.NoError(t, tree.Checkout(&git.CheckoutOptions{Branch: plumbing.NewBranchReferenceName("master")}))
	replaceIn(t, dir, "seed.yaml", "metadata:\n", "metadata:\n  labels: {a: b}\n")
	commit()

	count := func(args ...string) int {
		o := pergola(t, append([]string{"diff", dir, "--to", "feature", "-o", "json"}, args...)...)
		require.Equal(t, 1, o.code, "%+v", o)
		return len(decode[change.Plan](t, o).Items)
	}
	assert.Greater(t, count("--from", "master"), 1)
	assert.Equal(t, 1, count("--from", "master..."))
	assert.Equal(t, 1, count("--from", "master", "--merge-base"))
	o := pergola(t, "diff", dir, "--from", "nowhere...")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, `revision "nowhere": not found`)
}

func TestDiffToAFile(t *testing.T) {
	dir, _ := repository(t)
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	file := filepath.Join(t.TempDir(), "diff.html")
	o := pergola(t, "diff", dir, "-o", "html", "--output-file", file)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Empty(t, o.stdout)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "Some project")
	o = pergola(t, "diff", dir, "--output-file", filepath.Join(file, "below"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "write the report")
}

// TestDiffRendersOnlyAffectedOwners: a catalogue that cannot render Seeds fails only for a change
// of a Seed.
func TestDiffRendersOnlyAffectedOwners(t *testing.T) {
	dir, _ := repository(t)
	broken := filepath.Join(t.TempDir(), "catalogue")
	require.NoError(t, os.CopyFS(broken, components.FS))
	writeFile(t, broken, "seed/system/component.cue", "package component\n\ncomponent: {enabled: true, bundles: system: {cluster: \"seed\", source: cue: seed.metadata.name}}\n")
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	o := pergola(t, "diff", dir, "--catalogue", broken)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Some project")
	replaceIn(t, dir, "seed.yaml", "metadata:\n", "metadata:\n  labels: {a: b}\n")
	o = pergola(t, "diff", dir, "--catalogue", broken)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "component seed/system: ")
}
