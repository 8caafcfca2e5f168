package kept

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

func key(text string) Key { return sha256.Sum256([]byte(text)) }

func TestStoreKeepsBetweenRuns(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	_, ok := s.Get(key("a"))
	assert.False(t, ok)
	s.Put(key("a"), []byte("1"))
	s.Put(key("b"), nil)
	require.NoError(t, s.Save())

	again := Open(dir, "one")
	value, ok := again.Get(key("a"))
	assert.True(t, ok)
	assert.Equal(t, "1", string(value))
	value, ok = again.Get(key("b"))
	assert.True(t, ok)
	assert.Empty(t, value)
	_, ok = Open(dir, "another").Get(key("a"))
	assert.False(t, ok, "each landscape has its own")

	info, err := os.Stat(s.file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestStoreIsWrittenOnlyWithSomethingNew(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	require.NoError(t, s.Save())
	assert.NoFileExists(t, s.file)
	s.Put(key("a"), []byte("1"))
	require.NoError(t, s.Save())
	require.NoError(t, os.Remove(s.file))
	again := open(dir, "one", s.program)
	again.entries, again.added = s.entries, false
	again.Put(key("a"), []byte("1"))
	require.NoError(t, again.Save())
	assert.NoFileExists(t, s.file)
}

func TestStoreOfAnotherProgramIsEmpty(t *testing.T) {
	dir := t.TempDir()
	s := open(dir, "one", "first")
	s.Put(key("a"), []byte("1"))
	require.NoError(t, s.Save())
	_, ok := open(dir, "one", "second").Get(key("a"))
	assert.False(t, ok)
	_, ok = open(dir, "one", "first").Get(key("a"))
	assert.True(t, ok)
}

// TestBrokenStoreIsEmpty checks that a corrupt file counts as empty and is written again.
func TestBrokenStoreIsEmpty(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	s.Put(key("a"), []byte("some text"))
	s.Put(key("b"), []byte("some text"))
	require.NoError(t, s.Save())
	whole, err := os.ReadFile(s.file)
	require.NoError(t, err)
	for i := range whole {
		broken := append([]byte(nil), whole...)
		broken[i] ^= 1
		_, ok := read(broken, s.program)
		require.False(t, ok, "byte %d", i)
		_, ok = read(whole[:i], s.program)
		require.False(t, ok, "cut at %d", i)
	}
	require.NoError(t, os.WriteFile(s.file, []byte("nonsense"), 0o600))
	again := Open(dir, "one")
	_, ok := again.Get(key("a"))
	require.False(t, ok)
	again.Put(key("a"), []byte("new"))
	require.NoError(t, again.Save())
	value, ok := Open(dir, "one").Get(key("a"))
	require.True(t, ok)
	assert.Equal(t, "new", string(value))
}

func TestStoreForgetsWhatNobodyAsksFor(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "one")
	s.Put(key("used"), []byte("1"))
	s.Put(key("unused"), []byte("1"))
	require.NoError(t, s.Save())
	for run := range keptRuns + 1 {
		s = Open(dir, "one")
		assert.Contains(t, s.entries, key("unused"), "run %d", run)
		_, ok := s.Get(key("used"))
		require.True(t, ok)
		s.Put(key(fmt.Sprint(run)), nil)
		require.NoError(t, s.Save())
	}
	s = Open(dir, "one")
	assert.Contains(t, s.entries, key("used"))
	assert.NotContains(t, s.entries, key("unused"))
}

func TestFilesOfOldAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old, s := Open(dir, "old"), Open(dir, "new")
	old.Put(key("a"), nil)
	require.NoError(t, old.Save())
	long := time.Now().Add(-keptFor - time.Hour)
	require.NoError(t, os.Chtimes(old.file, long, long))
	other := filepath.Join(filepath.Dir(old.file), "notes.txt")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.Chtimes(other, long, long))
	s.Put(key("a"), nil)
	require.NoError(t, s.Save())
	assert.FileExists(t, other, "it is not ours")
	assert.NoFileExists(t, old.file)
	assert.FileExists(t, s.file)
}

// TestStoreIsSharedSafely checks that readers see a whole store during writes.
func TestStoreIsSharedSafely(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for writer := range 4 {
		group.Go(func() {
			for i := range 20 {
				s := Open(dir, "one")
				s.Put(key(fmt.Sprint(writer, i)), []byte(fmt.Sprint(writer, i)))
				assert.NoError(t, s.Save())
				data, err := os.ReadFile(s.file)
				assert.NoError(t, err)
				_, ok := read(data, s.program)
				assert.True(t, ok)
			}
		})
	}
	group.Wait()
	left, err := filepath.Glob(filepath.Join(dir, folder, "*"))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")
}

func TestStoreThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	s := Open(file, "one")
	s.Put(key("a"), nil)
	require.ErrorContains(t, s.Save(), "keeping results of validation")
}

func TestStoreInMemory(t *testing.T) {
	s := InMemory()
	s.Put(key("a"), []byte("1"))
	value, ok := s.Get(key("a"))
	assert.True(t, ok)
	assert.Equal(t, "1", string(value))
	require.NoError(t, s.Save())
}

func TestNoStore(t *testing.T) {
	var s *Store
	s.Put(key("a"), nil)
	_, ok := s.Get(key("a"))
	assert.False(t, ok)
	require.NoError(t, s.Save())
}

func TestProgramIsTheSameInEveryRun(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	first := buildID(path)
	assert.NotEmpty(t, first)
	assert.Equal(t, first, buildID(path))
	assert.Empty(t, buildID(filepath.Join(t.TempDir(), "none")))
}
