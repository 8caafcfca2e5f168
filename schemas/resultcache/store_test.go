// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func testKey(text string) Key { return sha256.Sum256([]byte(text)) }

func TestStorePersistsBetweenRuns(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	_, ok := s.Get(testKey("a"))
	assert.False(t, ok)
	s.Put(testKey("a"), []byte("1"))
	s.Put(testKey("b"), nil)
	require.NoError(t, s.Save())

	again := Open(dir, "one")
	value, ok := again.Get(testKey("a"))
	assert.True(t, ok)
	assert.Equal(t, "1", string(value))
	value, ok = again.Get(testKey("b"))
	assert.True(t, ok)
	assert.Empty(t, value)
	_, ok = Open(dir, "another").Get(testKey("a"))
	assert.False(t, ok, "each landscape has its own")

	info, err := os.Stat(s.path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestSaveWithoutChangeWritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	require.NoError(t, s.Save())
	assert.NoFileExists(t, s.path)
	s.Put(testKey("a"), []byte("1"))
	require.NoError(t, s.Save())
	require.NoError(t, os.Remove(s.path))
	again := openForProgram(dir, "one", s.programID)
	again.entries, again.isDirty = s.entries, false
	again.Put(testKey("a"), []byte("1"))
	require.NoError(t, again.Save())
	assert.NoFileExists(t, s.path)
}

func TestStoreOfAnotherProgramIsEmpty(t *testing.T) {
	dir := t.TempDir()
	s := openForProgram(dir, "one", "first")
	s.Put(testKey("a"), []byte("1"))
	require.NoError(t, s.Save())
	_, ok := openForProgram(dir, "one", "second").Get(testKey("a"))
	assert.False(t, ok)
	_, ok = openForProgram(dir, "one", "first").Get(testKey("a"))
	assert.True(t, ok)
}

// TestBrokenStoreIsEmpty checks that a corrupt file counts as empty and is written again.
func TestBrokenStoreIsEmpty(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	s.Put(testKey("a"), []byte("some text"))
	s.Put(testKey("b"), []byte("some text"))
	require.NoError(t, s.Save())
	whole, err := os.ReadFile(s.path)
	require.NoError(t, err)
	for i := range whole {
		broken := append([]byte(nil), whole...)
		broken[i] ^= 1
		_, ok := decode(broken, s.programID)
		require.False(t, ok, "byte %d", i)
		_, ok = decode(whole[:i], s.programID)
		require.False(t, ok, "cut at %d", i)
	}
	require.NoError(t, os.WriteFile(s.path, []byte("nonsense"), 0o600))
	again := Open(dir, "one")
	_, ok := again.Get(testKey("a"))
	require.False(t, ok)
	again.Put(testKey("a"), []byte("new"))
	require.NoError(t, again.Save())
	value, ok := Open(dir, "one").Get(testKey("a"))
	require.True(t, ok)
	assert.Equal(t, "new", string(value))
}

func TestUnusedValuesExpire(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	s.Put(testKey("used"), []byte("1"))
	s.Put(testKey("unused"), []byte("1"))
	require.NoError(t, s.Save())
	for run := range maxUnusedRuns + 1 {
		s = Open(dir, "one")
		assert.Contains(t, s.entries, testKey("unused"), "run %d", run)
		_, ok := s.Get(testKey("used"))
		require.True(t, ok)
		s.Put(testKey(fmt.Sprint(run)), nil)
		require.NoError(t, s.Save())
	}
	s = Open(dir, "one")
	assert.Contains(t, s.entries, testKey("used"))
	assert.NotContains(t, s.entries, testKey("unused"))
}

func TestOldFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old, s := Open(dir, "old"), Open(dir, "new")
	old.Put(testKey("a"), nil)
	require.NoError(t, old.Save())
	long := time.Now().Add(-maxFileAge - time.Hour)
	require.NoError(t, os.Chtimes(old.path, long, long))
	other := filepath.Join(filepath.Dir(old.path), "notes.txt")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.Chtimes(other, long, long))
	s.Put(testKey("a"), nil)
	require.NoError(t, s.Save())
	assert.FileExists(t, other, "it is not ours")
	assert.NoFileExists(t, old.path)
	assert.FileExists(t, s.path)
}

// TestConcurrentStores checks that readers see a whole store during writes.
func TestConcurrentStores(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for writer := range 4 {
		group.Go(func() {
			for i := range 20 {
				s := Open(dir, "one")
				s.Put(testKey(fmt.Sprint(writer, i)), []byte(fmt.Sprint(writer, i)))
				assert.NoError(t, s.Save())
				data, err := os.ReadFile(s.path)
				assert.NoError(t, err)
				_, ok := decode(data, s.programID)
				assert.True(t, ok)
			}
		})
	}
	group.Wait()
	left, err := filepath.Glob(filepath.Join(dir, storeFolder, "*"))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")
}

func TestUnwritableStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	s := Open(file, "one")
	s.Put(testKey("a"), nil)
	require.ErrorContains(t, s.Save(), "saving results of validation")
}

func TestStoreInMemory(t *testing.T) {
	s := InMemory()
	s.Put(testKey("a"), []byte("1"))
	value, ok := s.Get(testKey("a"))
	assert.True(t, ok)
	assert.Equal(t, "1", string(value))
	require.NoError(t, s.Save())
}

func TestNilStore(t *testing.T) {
	var s *Store
	s.Put(testKey("a"), nil)
	_, ok := s.Get(testKey("a"))
	assert.False(t, ok)
	require.NoError(t, s.Save())
}

func TestProgramIDIsStable(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	first := buildID(path)
	assert.NotEmpty(t, first)
	assert.Equal(t, first, buildID(path))
	assert.Empty(t, buildID(filepath.Join(t.TempDir(), "none")))
}
