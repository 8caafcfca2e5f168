// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
)

func TestDescribe(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "landscape")
	write := func(dir, name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	const config = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: small\nspec: {}\n"
	write(dir, "landscape.yaml", config)
	write(dir, "seed.yaml", "")
	repo, err := git.PlainInit(root, false)
	require.NoError(t, err)
	commit := func() string {
		t.Helper()
		tree, err := repo.Worktree()
		require.NoError(t, err)
		require.NoError(t, tree.AddWithOptions(&git.AddOptions{All: true}))
		hash, err := tree.Commit("a change", &git.CommitOptions{Author: &object.Signature{Name: "t", Email: "t@example.org", When: time.Unix(0, 0)}})
		require.NoError(t, err)
		return hash.String()
	}
	hash := commit()
	state := func(dir string) string {
		t.Helper()
		l, _, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
		require.NoError(t, err)
		return Describe(dir, l)
	}
	assert.Equal(t, dir+" at "+hash[:7], state(dir))
	write(dir, "seed.yaml", "# changed\n")
	assert.Equal(t, dir+" at "+hash[:7]+", with uncommitted changes in 1 file (seed.yaml)", state(dir))
	for _, name := range []string{"a.yaml", "b.yaml", "sub/c.yaml"} {
		write(dir, name, "")
	}
	assert.Equal(t, dir+" at "+hash[:7]+", with uncommitted changes in 4 files (a.yaml, b.yaml, seed.yaml …)", state(dir))
	// A layer outside the landscape's folder is part of it, other folders are not.
	hash = commit()
	write(filepath.Dir(dir), "elsewhere/x.yaml", "")
	write(filepath.Dir(dir), "base/landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: base\nspec: {}\n")
	assert.Equal(t, dir+" at "+hash[:7], state(dir))
	write(dir, "landscape.yaml", strings.Replace(config, "spec: {}", "spec:\n  layers: [../base]", 1))
	assert.Equal(t, dir+" at "+hash[:7]+", with uncommitted changes in 2 files (../base/landscape.yaml, landscape.yaml)", state(dir))

	outside := t.TempDir()
	write(outside, "landscape.yaml", config)
	assert.Equal(t, outside+", which is not in a Git repository", state(outside))
}
