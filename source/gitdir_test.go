// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

func inGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	command.Dir, command.Env = dir, gittest.IsolatedEnvironment()
	out, err := command.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// TestRepositoriesAsGitReadsThem: every repository that git reads is readable with and without the
// git program, also as the source of a landscape.
func TestRepositoriesAsGitReadsThem(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, origin, dir string) string{
		"shared": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--shared", origin, "c")
			return "c"
		},
		"with a reference": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--reference", origin, "file://"+origin, "c")
			return "c"
		},
		"bare and shared": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--bare", "--shared", origin, "c")
			return "c"
		},
		"a chain of stores": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--shared", origin, "b")
			inGit(t, dir, "clone", "--shared", "b", "c")
			return "c"
		},
		"relative alternates": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--bare", origin, "pool")
			inGit(t, dir, "clone", "--shared", "pool", "c")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c/.git/objects/info/alternates"), []byte("# the pool\n\n../../../pool/objects\n"), 0o600))
			return "c"
		},
		"a store of another name": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--shared", origin, "c")
			require.NoError(t, os.CopyFS(filepath.Join(dir, `st"ore`), os.DirFS(filepath.Join(origin, "objects"))))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c/.git/objects/info/alternates"), []byte(`"`+dir+`/st\"ore"`+"\n"), 0o600))
			return "c"
		},
		"sparse": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", origin, "c")
			inGit(t, filepath.Join(dir, "c"), "sparse-checkout", "set", "f")
			return "c"
		},
		"linked": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", origin, "c")
			inGit(t, filepath.Join(dir, "c"), "worktree", "add", "--detach", "../linked")
			return "linked"
		},
		"linked by relative paths": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", origin, "c")
			inGit(t, filepath.Join(dir, "c"), "worktree", "add", "--detach", "../linked")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "linked/.git"), []byte("gitdir: ../c/.git/worktrees/linked\n"), 0o600))
			inGit(t, filepath.Join(dir, "c"), "config", "core.repositoryFormatVersion", "1")
			// this git may be too old for the extension
			inGit(t, filepath.Join(dir, "c"), "config", "extensions.relativeWorktrees", "true")
			return "linked"
		},
		"linked, sparse and shared": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--shared", origin, "c")
			inGit(t, filepath.Join(dir, "c"), "worktree", "add", "--detach", "../linked")
			inGit(t, filepath.Join(dir, "linked"), "sparse-checkout", "set", "f")
			return "linked"
		},
		"a submodule": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "init", "c")
			inGit(t, filepath.Join(dir, "c"), "submodule", "add", origin, "module")
			return "c/module"
		},
		"a separate folder": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", "--separate-git-dir", "store", origin, "c")
			return "c"
		},
		"precious objects": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", origin, "c")
			inGit(t, dir+"/c", "config", "extensions.preciousObjects", "true")
			return "c"
		},
		// git ignores it
		"an empty folder .git": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", origin, "c")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "c/f/.git"), 0o700))
			return "c/f"
		},
		"repacked with an index of packs": func(t *testing.T, origin, dir string) string {
			inGit(t, dir, "clone", origin, "c")
			inGit(t, dir+"/c", "repack", "-a", "-d", "--write-midx")
			inGit(t, dir+"/c", "pack-refs", "--all")
			return "c"
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.New(t, t.TempDir(), "landscape")
			repo.PushFile("f/large.yaml", strings.Repeat("# more than go-git keeps of an object in memory\n", 1000), "large")
			first := repo.PushFile("f/a.yaml", "1", "first")
			last := repo.PushFile("f/a.yaml", "2", "second")
			dir := t.TempDir()
			top := filepath.Join(dir, build(t, repo.Bare, dir))
			for _, installed := range []bool{true, false} {
				r, err := Open(top)
				require.NoError(t, err)
				if !installed {
					r.program = nil
				}
				for rev, want := range map[string]string{"HEAD": last, "HEAD~1": first, first[:10]: first} {
					at, err := r.At(rev)
					require.NoError(t, err, rev)
					assert.Equal(t, want, at.Commit)
				}
				at, err := r.At("HEAD~1")
				require.NoError(t, err)
				data, err := fs.ReadFile(at.FS, "f/a.yaml")
				require.NoError(t, err)
				assert.Equal(t, "1", string(data))
				info, err := fs.Stat(at.FS, "f/a.yaml")
				require.NoError(t, err)
				assert.EqualValues(t, 1, info.Size())
				commit, changed, err := r.Uncommitted("f")
				require.NoError(t, err)
				assert.Equal(t, last, commit)
				if name != "bare and shared" {
					assert.Empty(t, changed)
				}
				base, err := r.MergeBase("HEAD", "HEAD~1")
				require.NoError(t, err)
				assert.Equal(t, first, base)
			}
			if name == "an empty folder .git" {
				return
			}
			s := resolveAndFetch(t, newTestRemote(t, Options{URL: "file://" + top}))
			assert.Equal(t, "2", readSnapshotFile(t, s, "f/a.yaml"))
		})
	}
}

// TestRepositoriesThatAreRefused: errors name the cause and a remedy, and call only damaged
// repositories damaged.
func TestRepositoriesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		make func(t *testing.T, dir string)
		want []string
	}{
		"SHA-256": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			inGit(t, dir, "init", "--object-format=sha256")
		}, []string{"SHA256 names", "git fast-export --all | git -C NEW fast-import"}},
		"an unknown extension": {func(t *testing.T, dir string) {
			inGit(t, dir, "config", "core.repositoryFormatVersion", "1")
			inGit(t, dir, "config", "extensions.newStore", "yes")
		}, []string{"the unknown extension newStore=yes"}},
		"an unknown store of references": {func(t *testing.T, dir string) { inGit(t, dir, "config", "extensions.refStorage", "tape") }, []string{"refStorage=tape"}},
		"a new format":                   {func(t *testing.T, dir string) { inGit(t, dir, "config", "core.repositoryFormatVersion", "2") }, []string{"format version 2, but only 0 and 1 can be read"}},
		"a configuration that is none": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git/config"), []byte("[core\n"), 0o600))
		}, []string{".git/config: "}},
		"a work tree whose repository moved": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nowhere/.git/worktrees/x\n"), 0o600))
		}, []string{"names /nowhere/.git/worktrees/x, which is not a Git repository", "git worktree repair"}},
		"a file .git of something else": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("x"), 0o600))
		}, []string{"does not name the folder of a repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.New(t, t.TempDir(), "landscape")
			repo.PushFile("a.yaml", "1", "first")
			test.make(t, repo.Work)
			_, err := Open(repo.Work)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
			require.NotErrorIs(t, err, ErrNoRepository)
			assert.NotContains(t, err.Error(), "damaged")
		})
	}
	_, err := Open(t.TempDir())
	require.ErrorIs(t, err, ErrNoRepository)
}

// TestReftable needs the git program, and the error says so if it is not installed.
func TestReftable(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	repo.PushFile("a.yaml", "1", "first")
	repo.Git("config", "core.repositoryFormatVersion", "1")
	repo.Git("config", "extensions.refStorage", "reftable")
	require.NoError(t, os.RemoveAll(filepath.Join(repo.Work, ".git/refs/heads")))
	require.NoError(t, os.WriteFile(filepath.Join(repo.Work, ".git/refs/heads"), []byte("this repository uses the reftable format\n"), 0o600))
	r, err := Open(repo.Work)
	require.NoError(t, err)
	r.program = nil
	_, err = r.At("main")
	require.ErrorContains(t, err, "only git reads references of the format reftable, and the git program is not installed")
}

// TestPartialClone: objects left at the remote are neither fetched nor called damaged.
func TestPartialClone(t *testing.T) {
	for _, filter := range []string{"blob:none", "blob:limit=2", "tree:0"} {
		t.Run(filter, func(t *testing.T) {
			repo := gittest.New(t, t.TempDir(), "landscape")
			repo.PushFile("f/a.yaml", "first", "first")
			repo.PushFile("f/a.yaml", "second", "second")
			inGit(t, repo.Bare, "config", "uploadpack.allowFilter", "true")
			inGit(t, repo.Bare, "config", "uploadpack.allowAnySHA1InWant", "true")
			clone := filepath.Join(t.TempDir(), "clone")
			inGit(t, repo.Root, "clone", "--filter="+filter, "file://"+repo.Bare, clone)
			r, err := Open(clone)
			require.NoError(t, err)
			at, err := r.At("HEAD")
			require.NoError(t, err)
			data, err := fs.ReadFile(at.FS, "f/a.yaml")
			require.NoError(t, err)
			assert.Equal(t, "second", string(data))
			at, err = r.At("HEAD~1")
			if err == nil {
				_, err = fs.ReadFile(at.FS, "f/a.yaml")
			}
			requireReason(t, ReasonIncomplete, err)
			require.ErrorContains(t, err, "is a partial clone (filter "+filter+") and lacks an object: `git fetch --refetch --no-filter origin` gets all of them")
			inGit(t, clone, "fetch", "--refetch", "--no-filter", "origin")
			r, err = Open(clone)
			require.NoError(t, err)
			at, err = r.At("HEAD~1")
			require.NoError(t, err)
			data, err = fs.ReadFile(at.FS, "f/a.yaml")
			require.NoError(t, err)
			assert.Equal(t, "first", string(data))
		})
	}
}

// TestMissingAlternate: the store with the borrowed objects was removed.
func TestMissingAlternate(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	repo.PushFile("a.yaml", "1", "first")
	clone := filepath.Join(t.TempDir(), "clone")
	inGit(t, repo.Root, "clone", "--shared", repo.Bare, clone)
	require.NoError(t, os.Rename(repo.Bare, repo.Bare+".moved"))
	r, err := Open(clone)
	require.NoError(t, err)
	_, err = r.At("HEAD")
	requireReason(t, ReasonIncomplete, err)
	require.ErrorContains(t, err, "borrows objects from "+filepath.Join(repo.Bare, "objects")+" (objects/info/alternates), which does not exist")
}

// TestRepositoryOfAnotherOwner: git refuses it unless the user trusts it, and nothing else
// overrides that.
func TestRepositoryOfAnotherOwner(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	commit := repo.PushFile("a.yaml", "1", "first")
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r, err := Open(repo.Work)
	require.NoError(t, err)
	// Git's own tests use this variable to simulate another owner.
	pretending := filepath.Join(t.TempDir(), "git")
	require.NoError(t, os.WriteFile(pretending, []byte("#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec '"+r.program.path+"' \"$@\"\n"), 0o755))
	r.program.path = pretending
	for _, rev := range []string{"HEAD", "main~1", "HEAD@{1}"} {
		_, err = r.At(rev)
		require.ErrorContains(t, err, "which belongs to another user: if you trust it, run `git config --global --add safe.directory "+repo.Work+"`")
	}
	repo.Git("config", "safe.directory", "*") // the repository has no say in this
	_, err = r.At("HEAD")
	require.ErrorContains(t, err, "belongs to another user")
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[safe]\n\tdirectory = \"/else\\\"where\\\\\"\n\tdirectory = "+repo.Work+"\n"), 0o600))
	at, err := r.At("HEAD")
	require.NoError(t, err)
	assert.Equal(t, commit, at.Commit)
}
