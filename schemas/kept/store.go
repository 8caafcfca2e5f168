package kept

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
	magic = "pergola kept 1\n"
	// keptRuns is the number of runs that an unused value survives, enough to switch between
	// branches.
	keptRuns = 20
	// limit is the size in bytes above which only values used by the last run are saved.
	limit = 256 << 20
	// keptFor is the age at which the file of an unused landscape is removed.
	keptFor = 60 * 24 * time.Hour

	folder    = "validate"
	extension = ".kept"
	// unfinished is the extension of temporary files.
	unfinished = ".kept-new"
)

// Store caches values. It is safe for concurrent use. A nil Store caches nothing.
type Store struct {
	file    string
	program string

	mutex   sync.Mutex
	entries map[Key]*entry
	added   bool
}

type entry struct {
	value []byte
	// unused is the number of runs since the last use of the value.
	unused uint64
}

// Open reads the store of a named landscape in a folder; Save creates the folder. A corrupt store,
// or one of another program, counts as empty.
func Open(dir, name string) *Store {
	program, err := program()
	if err != nil {
		return nil // results of other programs would be indistinguishable
	}
	return open(dir, name, program)
}

// InMemory returns a store that is never saved.
func InMemory() *Store { return &Store{entries: map[Key]*entry{}} }

func open(dir, name, program string) *Store {
	sum := sha256.Sum256([]byte(name))
	s := &Store{file: filepath.Join(dir, folder, hex.EncodeToString(sum[:12])+extension), program: program, entries: map[Key]*entry{}}
	data, err := os.ReadFile(s.file)
	if err != nil {
		return s
	}
	if entries, ok := read(data, program); ok {
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
	e.unused = 0
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
		before.unused = 0
		return
	}
	s.entries[key] = &entry{value: slices.Clone(value)}
	s.added = true
}

// Save writes the store if it has new values.
func (s *Store) Save() error {
	if s == nil {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.added || s.file == "" {
		return nil
	}
	dir := filepath.Dir(s.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping results of validation: %w", err)
	}
	if err := replace(s.file, s.write()); err != nil {
		return fmt.Errorf("keeping results of validation: %w", err)
	}
	s.added = false
	forgetOld(dir, time.Now())
	return nil
}

// replace writes a file atomically.
func replace(file string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "*"+unfinished)
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

// forgetOld removes files that were not written for keptFor.
func forgetOld(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		ours := filepath.Ext(e.Name()) == extension || filepath.Ext(e.Name()) == unfinished
		info, err := e.Info()
		if err == nil && ours && info.Mode()&fs.ModeType == 0 && now.Sub(info.ModTime()) > keptFor {
			os.Remove(filepath.Join(dir, e.Name())) // a cache may lose files
		}
	}
}

// write encodes the file: magic, digest of the rest, program, and the keys and values in any order.
func (s *Store) write() []byte {
	size := 0
	for _, e := range s.entries {
		size += len(e.value) + 48
	}
	stays := func(e *entry) bool { return e.unused <= keptRuns && (e.unused == 0 || size <= limit) }
	count := 0
	for _, e := range s.entries {
		if stays(e) {
			count++
		}
	}
	const head = len(magic) + sha256.Size
	w := Writer{data: make([]byte, head, head+len(s.program)+size+32)}
	w.Text(s.program)
	w.Uint(uint64(count))
	for key, e := range s.entries {
		if stays(e) {
			w.Key(key)
			w.Uint(e.unused)
			w.raw(e.value)
		}
	}
	sum := sha256.Sum256(w.data[head:])
	copy(w.data, magic)
	copy(w.data[len(magic):], sum[:])
	return w.data
}

// read decodes a file; false if it is incomplete or of another program.
func read(data []byte, program string) (map[Key]*entry, bool) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
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
	entries := make(map[Key]*entry, count)
	list := make([]entry, count)
	for i := range list {
		key := r.Key()
		list[i] = entry{unused: r.Uint() + 1}
		list[i].value = r.bytes()
		entries[key] = &list[i]
	}
	return entries, r.Whole()
}
