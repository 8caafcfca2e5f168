// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// objectStores are a repository's own object store and those it borrows from
// (objects/info/alternates). Clones by `git clone --reference` and `--shared` and forks on forges
// borrow. go-git reads alternates only for contents, and only one store deep.
type objectStores struct {
	// EncodedObjectStorer is the repository's own store, for operations that are not about one
	// object.
	storer.EncodedObjectStorer
	stores []*filesystem.ObjectStorage
	// missing are referenced stores that do not exist.
	missing []string
}

// maxAlternates is how many stores may borrow from each other in a row, as in git.
const maxAlternates = 5

func openObjectStores(dir string, unpacked cache.Object) (*objectStores, error) {
	out := &objectStores{}
	var dirs []string
	var add func(dir string, depth int) error
	add = func(dir string, depth int) error {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			dir = resolved
		}
		if slices.Contains(dirs, dir) || depth > maxAlternates {
			return nil
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			out.missing = append(out.missing, boundedLine(dir, 200))
			return nil
		}
		dirs = append(dirs, dir)
		borrowed, err := readAlternates(dir)
		for _, other := range borrowed {
			err = errors.Join(err, add(other, depth+1))
		}
		return err
	}
	if err := add(dir, 0); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		out.stores = append(out.stores, filesystem.NewObjectStorage(dotgit.New(objectsFS{osfs.New(dir)}), unpacked))
	}
	if len(out.stores) == 0 {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	return out, nil
}

// readAlternates returns the stores that a store borrows from. A relative path starts at the store.
func readAlternates(dir string) ([]string, error) {
	name := filepath.Join(dir, "info", "alternates")
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, `"`) {
			if unquoted, err := strconv.Unquote(line); err == nil {
				line = unquoted
			}
		}
		out = append(out, resolvePath(dir, line))
	}
	return out, nil
}

// EncodedObject implements storer.EncodedObjectStorer.
func (s *objectStores) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	return firstFound(s, func(store *filesystem.ObjectStorage) (plumbing.EncodedObject, error) {
		return store.EncodedObject(kind, hash)
	})
}

// EncodedObjectSize implements storer.EncodedObjectStorer.
func (s *objectStores) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	return firstFound(s, func(store *filesystem.ObjectStorage) (int64, error) { return store.EncodedObjectSize(hash) })
}

// HasEncodedObject implements storer.EncodedObjectStorer.
func (s *objectStores) HasEncodedObject(hash plumbing.Hash) error {
	_, err := firstFound(s, func(store *filesystem.ObjectStorage) (struct{}, error) {
		return struct{}{}, store.HasEncodedObject(hash)
	})
	return err
}

// hashesWithPrefix returns the objects whose names begin with the hexadecimal digits, sorted.
func (s *objectStores) hashesWithPrefix(digits string) ([]plumbing.Hash, error) {
	var whole []byte
	for i := 0; i+1 < len(digits); i += 2 {
		value, err := strconv.ParseUint(digits[i:i+2], 16, 8)
		if err != nil {
			return nil, err
		}
		whole = append(whole, byte(value))
	}
	var out []plumbing.Hash
	for _, store := range s.stores {
		found, err := store.HashesWithPrefix(whole)
		if err != nil {
			return nil, err
		}
		for _, hash := range found {
			if strings.HasPrefix(hash.String(), digits) {
				out = append(out, hash)
			}
		}
	}
	slices.SortFunc(out, func(a, b plumbing.Hash) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}

// firstFound tries one store after the other: an object that is unreadable in one may be intact in
// another.
func firstFound[T any](s *objectStores, get func(*filesystem.ObjectStorage) (T, error)) (T, error) {
	var failed error
	for _, store := range s.stores {
		found, err := get(store)
		if err == nil {
			return found, nil
		}
		if failed == nil || errors.Is(failed, plumbing.ErrObjectNotFound) {
			failed = err
		}
	}
	var none T
	return none, failed
}

// objectsFS presents an object store as go-git expects it: as the folder objects of a repository,
// without its own alternates.
type objectsFS struct{ billy.Filesystem }

func (f objectsFS) relativePath(name string) (string, error) {
	rel, err := filepath.Rel("objects", filepath.FromSlash(name))
	if err != nil || !filepath.IsLocal(rel) || rel == filepath.Join("info", "alternates") {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return rel, nil
}

func (f objectsFS) Open(name string) (billy.File, error) {
	rel, err := f.relativePath(name)
	if err != nil {
		return nil, err
	}
	file, err := f.Filesystem.Open(rel)
	if err != nil {
		return nil, err
	}
	return namedFile{file, name}, nil
}

// namedFile is a file with the requested name: go-git opens a pack again by that name.
type namedFile struct {
	billy.File
	name string
}

// Name implements billy.File.
func (f namedFile) Name() string { return f.name }

func (f objectsFS) Stat(name string) (fs.FileInfo, error) {
	rel, err := f.relativePath(name)
	if err != nil {
		return nil, err
	}
	return f.Filesystem.Stat(rel)
}

func (f objectsFS) ReadDir(name string) ([]fs.FileInfo, error) {
	rel, err := f.relativePath(name)
	if err != nil {
		return nil, err
	}
	return f.Filesystem.ReadDir(rel)
}
