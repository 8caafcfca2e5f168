// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

// newLargeRepository is a repository of 10,000 files in 100 folders.
func newLargeRepository(t testing.TB) *gittest.Repository {
	t.Helper()
	repo := gittest.New(t, t.TempDir(), "landscape")
	repo.PushFiles(10_000, func(i int) (string, string) {
		return fmt.Sprintf("shoots/%02d/%04d.yaml", i%100, i), fmt.Sprintf("kind: Shoot\nmetadata:\n  name: s%d\n%s", i, strings.Repeat(fmt.Sprintf("# %d\n", i*7919), 40))
	})
	return repo
}

// TestManyFilesAreNotRead: a snapshot reads folders, not files.
func TestManyFilesAreNotRead(t *testing.T) {
	repo := newLargeRepository(t)
	r := newTestRemote(t, Options{URL: "file://" + repo.Bare})
	head, err := r.Resolve(t.Context())
	require.NoError(t, err)
	_, err = r.Fetch(t.Context(), head)
	require.NoError(t, err)
	cached := r.(*gitRemote)
	clear(cached.checkedTrees)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := r.Fetch(t.Context(), head)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
	data, err := fs.ReadFile(s.FS, "shoots/07/0007.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(data), "name: s7\n")
}

func BenchmarkLargeRepository(b *testing.B) {
	repo := newLargeRepository(b)
	server := gittest.ServeHTTP(b, repo.Root)
	dir := filepath.Join(b.TempDir(), "cache")
	options := Options{URL: server.URL + "/landscape.git", Dir: dir}
	r, err := NewRemote(options)
	require.NoError(b, err)
	head, err := r.Resolve(b.Context())
	require.NoError(b, err)
	s, err := r.Fetch(b.Context(), head)
	require.NoError(b, err)
	b.Run("first fetch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r, err := NewRemote(Options{URL: options.URL})
			require.NoError(b, err)
			_, err = r.Fetch(b.Context(), head)
			require.NoError(b, err)
			require.NoError(b, r.Close())
		}
	})
	b.Run("poll with nothing new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			head, err := r.Resolve(b.Context())
			require.NoError(b, err)
			_, err = r.Fetch(b.Context(), head)
			require.NoError(b, err)
		}
	})
	b.Run("snapshot after a restart", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			clear(r.(*gitRemote).checkedTrees)
			_, err := r.Fetch(b.Context(), head)
			require.NoError(b, err)
		}
	})
	b.Run("read one file", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := fs.ReadFile(s.FS, "shoots/07/0007.yaml")
			require.NoError(b, err)
		}
	})
	b.Run("read all files", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			err := fs.WalkDir(s.FS, ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					_, err = fs.ReadFile(s.FS, name)
				}
				return err
			})
			require.NoError(b, err)
		}
	})
	require.NoError(b, r.Close())
}
