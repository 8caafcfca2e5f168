// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Key is the digest of everything that a value depends on.
type Key [sha256.Size]byte

const (
	fileMagic = "pergola kept 1\n"
	// maxUnusedRuns is the number of runs that an unused value survives, enough to switch between
	// branches.
	maxUnusedRuns = 20
	// maxStoreSize is the size in bytes above which only values used by the last run are saved.
	maxStoreSize = 256 << 20
	// maxFileAge is the age at which the file of an unused landscape is removed.
	maxFileAge = 60 * 24 * time.Hour

	storeFolder    = "validate"
	storeExtension = ".kept"
	// temporaryExtension is the extension of temporary files.
	temporaryExtension = ".kept-new"
)

// Store caches values. It is safe for concurrent use. A nil Store caches nothing.
type Store struct {
	path      string
	programID string

	mutex   sync.Mutex
	entries map[Key]*cacheEntry
	isDirty bool
}

type cacheEntry struct {
	value []byte
	// unusedRuns is the number of runs since the last use of the value.
	unusedRuns uint64
}

// Open reads the store of a named landscape in a folder; Save creates the folder. A corrupt store,
// or one of another program, counts as empty.
func Open(dir, name string) *Store {
	program, err := programID()
	if err != nil {
		return nil // results of other programs would be indistinguishable
	}
	return openForProgram(dir, name, program)
}

// InMemory returns a store that is never saved.
func InMemory() *Store { return &Store{entries: map[Key]*cacheEntry{}} }

func openForProgram(dir, name, program string) *Store {
	sum := sha256.Sum256([]byte(name))
	s := &Store{path: filepath.Join(dir, storeFolder, hex.EncodeToString(sum[:12])+storeExtension), programID: program, entries: map[Key]*cacheEntry{}}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return s
	}
	if entries, ok := decode(data, program); ok {
		s.entries = entries
	}
	return s
}

// Get returns a value, which the caller must not change.
func (s *Store) Get(key Key) ([]byte, bool) {
	if s == nil {
		return nil, false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.entries[key]
	if e == nil {
		return nil, false
	}
	e.unusedRuns = 0
	return e.value, true
}

// Put stores a value.
func (s *Store) Put(key Key, value []byte) {
	if s == nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if before := s.entries[key]; before != nil && bytes.Equal(before.value, value) {
		before.unusedRuns = 0
		return
	}
	s.entries[key] = &cacheEntry{value: slices.Clone(value)}
	s.isDirty = true
}

// Save writes the store if it has new values.
func (s *Store) Save() error {
	if s == nil {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.isDirty || s.path == "" {
		return nil
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("saving results of validation: %w", err)
	}
	if err := replaceFile(s.path, s.encode()); err != nil {
		return fmt.Errorf("saving results of validation: %w", err)
	}
	s.isDirty = false
	removeOldFiles(dir, time.Now())
	return nil
}

// replaceFile writes a file atomically.
func replaceFile(file string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "*"+temporaryExtension)
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename, which is fine
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

// removeOldFiles removes files that were not written for maxFileAge.
func removeOldFiles(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		ours := filepath.Ext(e.Name()) == storeExtension || filepath.Ext(e.Name()) == temporaryExtension
		info, err := e.Info()
		if err == nil && ours && info.Mode()&fs.ModeType == 0 && now.Sub(info.ModTime()) > maxFileAge {
			os.Remove(filepath.Join(dir, e.Name())) // a cache may lose files
		}
	}
}

// encode encodes the file: magic, digest of the rest, program, and the keys and values in any
// order.
func (s *Store) encode() []byte {
	size := 0
	for _, e := range s.entries {
		size += len(e.value) + 48
	}
	stays := func(e *cacheEntry) bool {
		return e.unusedRuns <= maxUnusedRuns && (e.unusedRuns == 0 || size <= maxStoreSize)
	}
	count := 0
	for _, e := range s.entries {
		if stays(e) {
			count++
		}
	}
	const head = len(fileMagic) + sha256.Size
	w := Writer{data: make([]byte, head, head+len(s.programID)+size+32)}
	w.Text(s.programID)
	w.Uint(uint64(count))
	for key, e := range s.entries {
		if stays(e) {
			w.Key(key)
			w.Uint(e.unusedRuns)
			w.appendBytes(e.value)
		}
	}
	sum := sha256.Sum256(w.data[head:])
	copy(w.data, fileMagic)
	copy(w.data[len(fileMagic):], sum[:])
	return w.data
}

// decode decodes a file; the result is false if it is incomplete or of another program.
func decode(data []byte, program string) (map[Key]*cacheEntry, bool) {
	rest, ok := bytes.CutPrefix(data, []byte(fileMagic))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	if sum := sha256.Sum256(rest[sha256.Size:]); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, false
	}
	r := NewReader(rest[sha256.Size:])
	if r.Text() != program {
		return nil, false
	}
	count := r.Count()
	entries := make(map[Key]*cacheEntry, count)
	list := make([]cacheEntry, count)
	for i := range list {
		key := r.Key()
		list[i] = cacheEntry{unusedRuns: r.Uint() + 1}
		list[i].value = r.bytes()
		entries[key] = &list[i]
	}
	return entries, r.IsComplete()
}
