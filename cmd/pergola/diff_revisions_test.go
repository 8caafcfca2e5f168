// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
)

// checkoutNewBranch creates a branch at HEAD and checks it out.
func checkoutNewBranch(t *testing.T, root, name string) {
	t.Helper()
	repo, err := git.PlainOpen(root)
	require.NoError(t, err)
	tree, err := repo.Worktree()
	require.NoError(t, err)
	require.NoError(t, tree.Checkout(&git.CheckoutOptions{Branch: plumbing.NewBranchReferenceName(name), Create: true}))
}

// TestDiffInAShallowClone: an error about a missing commit of a shallow clone says how to fetch it.
func TestDiffInAShallowClone(t *testing.T) {
	dir, commit := repository(t)
	root := filepath.Dir(dir)
	checkoutNewBranch(t, root, "feature")
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	commit()
	replaceIn(t, dir, "project.yaml", "description: Some project", "description: Another project")
	commit()

	shallow := t.TempDir()
	repo, err := git.PlainClone(shallow, false, &git.CloneOptions{URL: root, Depth: 1, SingleBranch: true, ReferenceName: plumbing.NewBranchReferenceName("feature")})
	require.NoError(t, err)
	t.Chdir(shallow)
	const how = "; the clone is shallow and has only the last commits: `git fetch --unshallow` gets the others"
	o := pergola(t, "diff", "landscape", "--from", "HEAD~1", "--to", "HEAD")
	assert.Equal(t, 2, o.code, "%+v", o)
	assert.Contains(t, o.stderr, `revision "HEAD~1": not found in `)
	assert.Contains(t, o.stderr, how)
	o = pergola(t, "diff", "landscape", "--from", "origin/master...", "--to", "HEAD")
	assert.Equal(t, 2, o.code, "%+v", o)
	assert.Contains(t, o.stderr, `revision "origin/master": not found in `)
	assert.Contains(t, o.stderr, how)

	// The tip of the branch exists, but not the merge base.
	remote, err := repo.Remote("origin")
	require.NoError(t, err)
	require.NoError(t, remote.Fetch(&git.FetchOptions{Depth: 1, RefSpecs: []config.RefSpec{"+refs/heads/master:refs/remotes/origin/master"}}))
	o = pergola(t, "diff", "landscape", "--from", "origin/master...", "--to", "HEAD")
	assert.Equal(t, 2, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "origin/master and HEAD")
	assert.Contains(t, o.stderr, how)
	// Without the three dots both tips are compared, so commits that the branch lacks are
	// differences, too.
	o = pergola(t, "diff", "landscape", "--from", "origin/master", "--to", "HEAD")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Another project")
}

// TestDiffOfUnrelatedHistories: unrelated branches have no merge base, but can be compared
// directly.
func TestDiffOfUnrelatedHistories(t *testing.T) {
	dir, commit := repository(t)
	root := filepath.Dir(dir)
	repo, err := git.PlainOpen(root)
	require.NoError(t, err)
	require.NoError(t, repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName("other"))))
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	commit()
	for _, args := range [][]string{{"--from", "master...", "--to", "other"}, {"--from", "master", "--to", "other", "--merge-base"}} {
		o := pergola(t, append([]string{"diff", dir}, args...)...)
		assert.Equal(t, 2, o.code, "%+v", o)
		assert.Empty(t, o.stdout)
		assert.Contains(t, o.stderr, "Error: revisions master and other have no commit in common")
		assert.NotContains(t, o.stderr, "shallow")
	}
	o := pergola(t, "diff", dir, "--from", "master", "--to", "other")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Some project")
}

// TestDiffOfTwoInvalidRevisions: the errors of both revisions are reported at once, each with its
// revision, and in JSON as well.
func TestDiffOfTwoInvalidRevisions(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "seed.yaml", "    region: local\n", "    regoin: local\n")
	commit()
	replaceIn(t, dir, "seed.yaml", "    regoin: local\n", "    region: local\n")
	replaceIn(t, dir, "project.yaml", "  description: ", "  descriptoin: ")

	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Empty(t, o.stdout)
	before, after := "HEAD: "+filepath.Join(dir, "seed.yaml")+":9:5: error: Seed local: spec.provider.regoin: ", filepath.Join(dir, "project.yaml")+":16:3: error: Project local: spec.descriptoin: "
	assert.Contains(t, o.stderr, before)
	assert.Contains(t, o.stderr, after)
	assert.NotContains(t, o.stderr, "HEAD: "+after)
	assert.Contains(t, o.stderr, "Error: the landscape is valid neither in the work tree nor in revision HEAD: nothing was done\n")
	var files []string
	for _, v := range decode[errorResult](t, pergola(t, "diff", dir, "-o", "json")).Error.Findings {
		files = append(files, v.File)
	}
	assert.Contains(t, files, "HEAD: "+filepath.Join(dir, "seed.yaml"))
	assert.Contains(t, files, filepath.Join(dir, "project.yaml"))

	commit()
	o = pergola(t, "diff", dir, "--from", "HEAD~1", "--to", "HEAD")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "HEAD~1: "+filepath.Join(dir, "seed.yaml")+":9:5: error: ")
	assert.Contains(t, o.stderr, "HEAD: "+filepath.Join(dir, "project.yaml")+":16:3: error: ")

	o = pergola(t, "diff", dir, "-o", "markdown")
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "could not be compared: ", "a comment must not say, or be taken away as if, nothing changed")
	assert.Contains(t, o.stdout, "valid neither in the work tree")
	assert.NotContains(t, o.stdout, "No changes")
	assert.Contains(t, o.stdout, "Nothing was compared")
	assert.Contains(t, o.stdout, "project.yaml:16:3: error: Project local: spec.descriptoin: ", "the first findings are in the comment")
	assert.Contains(t, o.stderr, "Error: ")
}

// TestDiffOfAddedAndRemovedLandscapes: a folder that is a landscape in one revision only is
// all new or all deleted. A folder without a landscape in both, or a file, is an error.
func TestDiffOfAddedAndRemovedLandscapes(t *testing.T) {
	dir, commit := repository(t)
	root := filepath.Dir(dir)
	writeFile(t, root, "other/README.md", "nothing yet\n")
	commit()
	smallLandscape(t, filepath.Join(root, "other"))
	t.Chdir(root)
	o := pergola(t, "diff", "other")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Note: revision HEAD has no landscape in this folder: everything is new\n")
	commit()
	o = pergola(t, "diff", "other", "--from", "HEAD", "--to", "HEAD~1")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Note: revision HEAD~1 has no landscape in this folder: such a revision is not applied, and the clusters stay unchanged\n")
	o = pergola(t, "diff", "other", "--from", "HEAD~1", "--to", "HEAD~2")
	assert.Equal(t, 2, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "Error: other is not a landscape: neither revision HEAD~1 nor revision HEAD~2 has a file landscape.yaml there")
	o = pergola(t, "diff", "landscape/seed.yaml")
	assert.Equal(t, 2, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "Error: landscape/seed.yaml is not a landscape: it is a file; give the folder that has landscape.yaml; the folder above is one: landscape")
}

// TestDiffOfARepair: a revision in which two components render the same object is invalid. The
// commit that repairs it can be reviewed.
func TestDiffOfARepair(t *testing.T) {
	dir, commit := repository(t)
	overlay := func(component, bundle, value string) {
		writeFile(t, dir, "components/seed/"+component+"/kustomization.yaml", "resources: [more.yaml]\n")
		writeFile(t, dir, "components/seed/"+component+"/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, annotations: {render.pergola.dev/bundle: "+bundle+"}}\ndata: {a: "+value+"}\n")
	}
	overlay("system", "system", "first")
	overlay("gardener-resource-manager", "gardener-resource-manager", "second")
	broken := commit()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "components/seed/system")))
	commit()
	overlay("gardener-resource-manager", "gardener-resource-manager", "third")

	o := pergola(t, "diff", dir, "--from", broken, "-o", "json")
	assert.Equal(t, 1, o.code, "%+v", o)
	p := decode[change.Plan](t, o)
	require.Len(t, p.Items, 1, "%+v", o)
	assert.Equal(t, change.Change, p.Items[0].Action)
	assert.Equal(t, "garden", p.Items[0].Object.Namespace)
	assert.Equal(t, []change.Field{{Path: "data.a", Old: "second", New: "third"}}, p.Items[0].Fields, "what the bundle had that keeps it, not the other one")
	require.Len(t, p.Notes, 1, "%q", p.Notes)
	assert.Contains(t, p.Notes[0], "revision "+broken+" is not valid (2 errors): the comparison uses the part that renders")

	// The reverse change cannot be applied.
	o = pergola(t, "diff", dir, "--from", "HEAD", "--to", broken)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Empty(t, o.stdout)
	assert.Contains(t, o.stderr, "ConfigMap more: metadata.name: is rendered twice for the cluster (")
}

// TestDiffOfARenamedFolder: the name identifies a landscape; a renamed folder is not a difference.
func TestDiffOfARenamedFolder(t *testing.T) {
	dir, commit := repository(t)
	root := filepath.Dir(dir)
	replaceIn(t, dir, "project.yaml", "description: The project", "description: One project")
	former := commit()
	require.NoError(t, os.Rename(dir, filepath.Join(root, "production")))
	replaceIn(t, filepath.Join(root, "production"), "project.yaml", "description: One project", "description: Some project")
	commit()
	t.Chdir(root)

	const note = "has this landscape in folder landscape: the comparison uses that folder. An operator that syncs it stops until its Landscape names the new folder (spec.source.path)"
	for _, args := range [][]string{{"production"}, {"production", "--to", "HEAD"}} {
		p := decode[change.Plan](t, pergola(t, append([]string{"diff", "--from", former, "-o", "json"}, args...)...))
		require.Len(t, p.Items, 1, "%+v", p.Items)
		assert.Equal(t, "Project", p.Items[0].Object.Kind)
		assert.Equal(t, []string{"revision " + former + " " + note}, p.Notes)
	}
	report := decode[landscapePlans](t, pergola(t, "diff", "--all", "--from", former, "--to", "HEAD", "-o", "json"))
	require.Equal(t, []string{"small"}, report.names(), "its name, whatever its folder")
	assert.Len(t, report.Landscapes[0].Items, 1)

	p := decode[change.Plan](t, pergola(t, "diff", "landscape", "--from", former, "--to", "HEAD", "-o", "json"))
	assert.Empty(t, p.Items)
	require.Len(t, p.Notes, 2, "%q", p.Notes)
	assert.Equal(t, "revision HEAD has this landscape in folder production: compare that one", p.Notes[1])
}

// TestDiffAcrossCatalogues: a revision for another catalogue is rendered with the program's
// catalogue. A note says that changes of the catalogue itself are missing; the other changes are
// shown.
func TestDiffAcrossCatalogues(t *testing.T) {
	dir, commit := repository(t)
	file := readDemoFile(t, "landscape.yaml")
	writeFile(t, dir, "landscape.yaml", strings.Replace(file, "version: "+components.Version, "version: 0.0.1", 1))
	old := commit()
	writeFile(t, dir, "landscape.yaml", file)
	writeFile(t, dir, "components/seed/system/kustomization.yaml", "resources: [more.yaml]\n")
	writeFile(t, dir, "components/seed/system/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n")

	o := pergola(t, "diff", dir, "--from", old, "-o", "json")
	assert.Equal(t, 1, o.code, "%+v", o)
	p := decode[change.Plan](t, o)
	require.Len(t, p.Items, 1, "%+v", o)
	assert.Equal(t, change.Create, p.Items[0].Action)
	require.Len(t, p.Notes, 1)
	assert.Contains(t, p.Notes[0], "is written for catalogue 0.0.1, which this program does not have: both revisions are rendered with "+components.Version)
	assert.NotContains(t, o.stderr, "landscape/catalogue")
}
