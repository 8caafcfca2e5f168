// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

// damageFiles truncates all files of a folder with an ending, or removes them for a negative
// length.
func damageFiles(t *testing.T, dir, ending string, length int64) {
	t.Helper()
	found := 0
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(name, ending) {
			return err
		}
		found++
		if length < 0 {
			return os.Remove(name)
		}
		require.NoError(t, os.Chmod(name, 0o600))
		return os.Truncate(name, length)
	}))
	require.Positive(t, found, "there is nothing to be damaged")
}

// TestDamagedCache: damaged files of the cache cost no more than another fetch, before and while
// the operator runs.
func TestDamagedCache(t *testing.T) {
	for name, test := range map[string]struct {
		ending string
		length int64
	}{
		"pack cut off": {".pack", 40}, "pack gone": {".pack", -1}, "pack empty": {".pack", 0},
		"index cut off": {".idx", 1100}, "index empty": {".idx", 0}, "index gone": {".idx", -1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			repo := gittest.New(t, root, "landscape")
			for i := range 20 {
				repo.WriteFile(fmt.Sprintf("f/%d.yaml", i), strings.Repeat(fmt.Sprintf("line %d\n", i), 100))
			}
			repo.PushFile("a.yaml", "1", "one")
			options := Options{URL: "file://" + repo.Bare, Dir: filepath.Join(t.TempDir(), "cache")}
			r := newTestRemote(t, options)
			resolveAndFetch(t, r)
			require.NoError(t, r.Close())
			damageFiles(t, filepath.Join(options.Dir), test.ending, test.length)
			r = newTestRemote(t, options)
			assert.Equal(t, "1", readSnapshotFile(t, resolveAndFetch(t, r), "a.yaml"), "after a restart")

			// While it runs, readers get an error, and the next fetch replaces the file.
			repo.PushFile("b.yaml", "2", "two")
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			r = newTestRemote(t, options)
			_, err = r.(*gitRemote).openCache()
			require.NoError(t, err)
			damageFiles(t, filepath.Join(options.Dir), test.ending, test.length)
			s, err := r.Fetch(t.Context(), head)
			if err == nil { // folders that were read before the damage are enough
				if _, err = fs.ReadFile(s.FS, "b.yaml"); err != nil {
					requireReason(t, ReasonDamaged, err)
					require.ErrorContains(t, err, "the cache of "+options.URL+" is damaged, and is fetched again")
					requireReason(t, ReasonDamaged, s.FS.(*TreeFS).Damaged())
				}
			}
			assert.Equal(t, "2", readSnapshotFile(t, resolveAndFetch(t, r), "b.yaml"))
			assert.Equal(t, strings.Repeat("line 7\n", 100), readSnapshotFile(t, resolveAndFetch(t, r), "f/7.yaml"))
		})
	}
}

// panickingStore is a store that panics, like go-git with some damaged objects.
type panickingStore struct {
	storer.EncodedObjectStorer
	armed *bool
}

func (e panickingStore) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if *e.armed {
		panic("slice bounds out of range")
	}
	return e.EncodedObjectStorer.EncodedObject(kind, hash)
}

func (e panickingStore) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	if *e.armed {
		panic("slice bounds out of range")
	}
	return e.EncodedObjectStorer.EncodedObjectSize(hash)
}

// TestPanicsOfGoGit: panics become errors of the revision and leave no lock behind.
func TestPanicsOfGoGit(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("dir/a.yaml", "1", "one")
	local, err := Open(repo.Work)
	require.NoError(t, err)
	at, err := local.At("HEAD")
	require.NoError(t, err)
	armed := true
	local.objects.storer = panickingStore{local.objects.storer, &armed}
	for range 2 {
		_, err = fs.ReadFile(at.FS, "dir/a.yaml")
		requireReason(t, ReasonDamaged, err)
		require.ErrorContains(t, err, "the Git repository "+local.Root+" is damaged")
		require.ErrorContains(t, err, "git fsck")
		_, err = fs.Stat(at.FS, "dir/a.yaml")
		requireReason(t, ReasonDamaged, err)
	}

	armed = false
	r := newTestRemote(t, Options{URL: "file://" + repo.Bare})
	resolveAndFetch(t, r)
	cache := r.(*gitRemote).cache
	cache.objects.storer = panickingStore{cache.objects.storer, &armed}
	armed = true
	head := Head{Name: "main", Commit: at.Commit}
	s, err := r.Fetch(t.Context(), head)
	require.NoError(t, err, "what is damaged was fetched anew")
	assert.Equal(t, "1", readSnapshotFile(t, s, "dir/a.yaml"))

	func() {
		defer r.(*gitRemote).recoverPanic(&err)
		panic("anywhere else")
	}()
	requireReason(t, ReasonDamaged, err)
	assert.Equal(t, "1", readSnapshotFile(t, resolveAndFetch(t, r), "dir/a.yaml"))
}

// TestDamagedRepository: the error about a damaged repository on disk says so, instead of blaming
// the revision.
func TestDamagedRepository(t *testing.T) {
	for _, length := range []int64{0, 60, 100} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			repo := gittest.New(t, t.TempDir(), "landscape")
			repo.PushFile("a.yaml", strings.Repeat("x", 100), "one")
			repo.Git("gc", "--quiet")
			damageFiles(t, filepath.Join(repo.Work, ".git", "objects"), ".pack", length)
			local, err := Open(repo.Work)
			require.NoError(t, err)
			for _, rev := range []string{"HEAD", "main", "refs/heads/main"} {
				at, err := local.At(rev)
				if err == nil {
					_, err = fs.ReadFile(at.FS, "a.yaml")
				}
				requireReason(t, ReasonDamaged, err)
				require.ErrorContains(t, err, "git fsck")
			}
			_, err = local.At("maim")
			require.ErrorContains(t, err, "not found")
			_, err = local.MergeBase("HEAD", "main")
			require.Error(t, err)
		})
	}
}
