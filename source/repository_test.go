// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/require"
)

func repository(t *testing.T) (string, *git.Repository) {
	t.Helper()
	dir := t.TempDir()
	repo, err := git.PlainInit(dir, false)
	require.NoError(t, err)
	return dir, repo
}

func commit(t *testing.T, repo *git.Repository, message string) string {
	t.Helper()
	tree, err := repo.Worktree()
	require.NoError(t, err)
	require.NoError(t, tree.AddGlob("."))
	hash, err := tree.Commit(message, &git.CommitOptions{Author: &object.Signature{Name: "t", Email: "t@example.com", When: time.Unix(0, 0)}})
	require.NoError(t, err)
	return hash.String()
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(t, os.WriteFile(p, []byte(content), 0o644))
}

func TestRevisionIsAFileSystem(t *testing.T) {
	dir, repo := repository(t)
	write(t, dir, "a/b/one.yaml", "one")
	write(t, dir, "two.yaml", "two")
	first := commit(t, repo, "first")
	write(t, dir, "two.yaml", "changed")
	commit(t, repo, "second")

	r, err := Open(filepath.Join(dir, "a", "b"))
	require.NoError(t, err)
	rel, err := r.RelativePath(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "a", rel)

	for rev, want := range map[string]string{first: "two", first[:10]: "two", "HEAD~1": "two", "HEAD": "changed"} {
		revision, err := r.At(rev)
		require.NoError(t, err, rev)
		data, err := fs.ReadFile(revision.FS, "two.yaml")
		require.NoError(t, err)
		require.Equal(t, want, string(data), rev)
	}
	revision, err := r.At("HEAD")
	require.NoError(t, err)
	require.NoError(t, fstest.TestFS(revision.FS, "a/b/one.yaml", "two.yaml"))
}

func TestLinksAreNotFollowed(t *testing.T) {
	dir, repo := repository(t)
	write(t, dir, "real.yaml", "x")
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "link")))
	commit(t, repo, "link")
	r, err := Open(dir)
	require.NoError(t, err)
	revision, err := r.At("HEAD")
	require.NoError(t, err)
	_, err = revision.FS.Open("link")
	require.ErrorContains(t, err, "symbolic links are not followed")
	entries, err := fs.ReadDir(revision.FS, ".")
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, entries[0].Type())
}

func TestErrorsSayWhatToDo(t *testing.T) {
	_, err := Open(t.TempDir())
	require.ErrorContains(t, err, "is not in a Git repository: run git init")
	dir, repo := repository(t)
	write(t, dir, "a", "x")
	commit(t, repo, "c")
	r, err := Open(dir)
	require.NoError(t, err)
	_, err = r.At("nowhere")
	require.ErrorContains(t, err, `revision "nowhere": not found`)
	_, err = r.At("HEAD:a")
	require.EqualError(t, err, `revision "HEAD:a": ":a" names a file or folder of a commit, not a commit: give the commit alone (HEAD); the folder is the argument`)
	head, err := repo.Head()
	require.NoError(t, err)
	last, err := repo.CommitObject(head.Hash())
	require.NoError(t, err)
	_, err = r.At(last.TreeHash.String())
	require.ErrorContains(t, err, "give a branch, a tag or a commit")
	_, err = r.RelativePath(t.TempDir())
	require.ErrorContains(t, err, "is not inside the repository")
}

// TestFolderMissingInTheWorkTree: an earlier revision may have it.
func TestFolderMissingInTheWorkTree(t *testing.T) {
	dir, repo := repository(t)
	write(t, dir, "a/b/one.yaml", "one")
	commit(t, repo, "c")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "a")))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, top := range []string{dir, link} {
		r, err := Open(filepath.Join(top, "a", "b"))
		require.NoError(t, err)
		rel, err := r.RelativePath(filepath.Join(top, "a", "b"))
		require.NoError(t, err)
		require.Equal(t, "a/b", rel)
	}
}

func TestBareAndShallowRepository(t *testing.T) {
	dir, repo := repository(t)
	write(t, dir, "a/one.yaml", "one")
	first := commit(t, repo, "first")
	write(t, dir, "a/one.yaml", "two")
	commit(t, repo, "second")
	bare := filepath.Join(t.TempDir(), "bare.git")
	_, err := git.PlainClone(bare, true, &git.CloneOptions{URL: dir})
	require.NoError(t, err)
	r, err := Open(filepath.Join(bare, "a"))
	require.NoError(t, err)
	rel, err := r.RelativePath(filepath.Join(bare, "a"))
	require.NoError(t, err)
	require.Equal(t, "a", rel)
	revision, err := r.At("HEAD~1")
	require.NoError(t, err)
	require.Equal(t, first, revision.Commit)

	shallow := t.TempDir()
	_, err = git.PlainClone(shallow, false, &git.CloneOptions{URL: dir, Depth: 1})
	require.NoError(t, err)
	r, err = Open(shallow)
	require.NoError(t, err)
	for _, rev := range []string{"HEAD~1", first} {
		_, err = r.At(rev)
		require.ErrorContains(t, err, "`git fetch --unshallow` gets the others", rev)
	}
	_, err = r.At("HEAD")
	require.NoError(t, err)
}
