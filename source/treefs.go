// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// TreeFS presents the tree of a commit as an fs.FS. Opening a symbolic link is an error, so no path
// leaves the tree. Folders are read once, files whenever they are opened. A Git LFS pointer, and a
// path in a submodule that was not fetched, are errors of type Error.
type TreeFS struct {
	objects *objectReader
	root    plumbing.Hash
	when    time.Time
	// maxFileSize is the maximum size of a file to read, in bytes; it is 0 for any.
	maxFileSize int64
	// submodules are the trees of submodules, by path.
	submodules map[string]*TreeFS

	mutex   sync.Mutex
	folders map[string]*treeFolder
}

// treeFolder is a tree ordered by name.
type treeFolder struct {
	entries []object.TreeEntry
}

func (f *treeFolder) find(name string) (object.TreeEntry, bool) {
	at := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].Name >= name })
	if at < len(f.entries) && f.entries[at].Name == name {
		return f.entries[at], true
	}
	return object.TreeEntry{}, false
}

func newTreeFS(objects *objectReader, root plumbing.Hash, when time.Time) *TreeFS {
	return &TreeFS{objects: objects, root: root, when: when, folders: map[string]*treeFolder{}}
}

var (
	errLinkNotFollowed = errors.New("symbolic links are not followed")
	errIsDirectory     = errors.New("is a directory")
	errNotDirectory    = errors.New("not a directory")
)

// treeOf returns the tree that contains a path, which may be a submodule's, and the path within it.
func (t *TreeFS) treeOf(name string) (*TreeFS, string) {
	for where, module := range t.submodules {
		if name == where {
			return module.treeOf(".")
		}
		if rest, ok := strings.CutPrefix(name, where+"/"); ok {
			return module.treeOf(rest)
		}
	}
	return t, name
}

// folder returns the folder at a path of this tree.
func (t *TreeFS) folder(name string) (*treeFolder, error) {
	t.mutex.Lock()
	found := t.folders[name]
	t.mutex.Unlock()
	if found != nil {
		return found, nil
	}
	hash := t.root
	if name != "." {
		entry, err := t.entry(name)
		switch {
		case err != nil:
			return nil, err
		case entry.Mode == filemode.Submodule:
			return nil, submoduleMissing(name)
		case entry.Mode == filemode.Symlink:
			return nil, errLinkNotFollowed
		case entry.Mode != filemode.Dir:
			return nil, errNotDirectory
		}
		hash = entry.Hash
	}
	found, err := t.objects.tree(hash)
	if err != nil {
		return nil, err
	}
	t.mutex.Lock()
	t.folders[name] = found
	t.mutex.Unlock()
	return found, nil
}

// entry returns the entry at a path of this tree other than the root.
func (t *TreeFS) entry(name string) (object.TreeEntry, error) {
	parent, base := path.Split(name)
	if parent = strings.TrimSuffix(parent, "/"); parent == "" {
		parent = "."
	}
	folder, err := t.folder(parent)
	if errors.Is(err, errNotDirectory) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return object.TreeEntry{}, err
	}
	found, ok := folder.find(base)
	if !ok {
		return object.TreeEntry{}, fs.ErrNotExist
	}
	return found, nil
}

func submoduleMissing(name string) error {
	return newError(ReasonSubmoduleMissing, "%s is a submodule, which is not read: set source.submodules, or keep the files in the repository itself", name)
}

// Open implements fs.FS.
func (t *TreeFS) Open(name string) (fs.File, error) {
	fail := func(err error) (fs.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	info, owner, hash, err := t.stat(name)
	switch {
	case err != nil:
		return fail(err)
	case info.mode&fs.ModeSymlink != 0:
		return fail(errLinkNotFollowed)
	case info.mode&fs.ModeIrregular != 0:
		return fail(submoduleMissing(name))
	case info.IsDir():
		entries, err := t.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &treeDir{info: info, entries: entries}, nil
	}
	data, err := owner.readBlob(name, hash)
	if err != nil {
		return fail(err)
	}
	return &treeFile{info: info, Reader: bytes.NewReader(data)}, nil
}

// readBlob returns the content of a file, unless it is too large or a Git LFS pointer.
func (t *TreeFS) readBlob(name string, hash plumbing.Hash) ([]byte, error) {
	if t.maxFileSize > 0 {
		size, err := t.objects.size(hash)
		if err != nil {
			return nil, err
		}
		if size > t.maxFileSize {
			return nil, newError(ReasonTooLarge, "%s has %s, and a file may have at most %s: make it smaller, or keep it out of the folders of the landscape", boundedLine(name, 200), formatSize(size), formatSize(t.maxFileSize))
		}
	}
	data, err := t.objects.blob(hash)
	if err == nil && isLFSPointer(data) {
		return nil, lfsPointerError(name)
	}
	return data, err
}

// stat describes the object at a path, without following links.
func (t *TreeFS) stat(name string) (treeInfo, *TreeFS, plumbing.Hash, error) {
	if !fs.ValidPath(name) {
		return treeInfo{}, nil, plumbing.ZeroHash, fs.ErrInvalid
	}
	owner, inner := t.treeOf(name)
	if inner == "." {
		return treeInfo{name: path.Base(name), mode: fs.ModeDir | 0o755, when: owner.when}, owner, owner.root, nil
	}
	entry, err := owner.entry(inner)
	if err != nil {
		return treeInfo{}, nil, plumbing.ZeroHash, err
	}
	info := owner.info(entry)
	if info.mode.IsRegular() {
		if info.size, err = owner.objects.size(entry.Hash); err != nil {
			return treeInfo{}, nil, plumbing.ZeroHash, err
		}
	}
	return info, owner, entry.Hash, nil
}

// ReadFile implements fs.ReadFileFS.
func (t *TreeFS) ReadFile(name string) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	owner, inner := t.treeOf(name)
	if inner == "." {
		return fail(errIsDirectory)
	}
	entry, err := owner.entry(inner)
	switch {
	case err != nil:
		return fail(err)
	case entry.Mode == filemode.Submodule:
		return fail(submoduleMissing(name))
	case entry.Mode == filemode.Symlink:
		return fail(errLinkNotFollowed)
	case !entry.Mode.IsFile():
		return fail(errIsDirectory)
	}
	data, err := owner.readBlob(name, entry.Hash)
	if err != nil {
		return fail(err)
	}
	return data, nil
}

// ReadDir implements fs.ReadDirFS.
func (t *TreeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	fail := func(err error) ([]fs.DirEntry, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	owner, inner := t.treeOf(name)
	folder, err := owner.folder(inner)
	if err != nil {
		return fail(err)
	}
	out := make([]fs.DirEntry, 0, len(folder.entries))
	for _, entry := range folder.entries {
		info := owner.info(entry)
		if entry.Mode == filemode.Submodule && owner.submodules[path.Join(inner, entry.Name)] != nil {
			info.mode = fs.ModeDir | 0o755
		}
		out = append(out, treeEntry{info: info, hash: entry.Hash, objects: owner.objects})
	}
	return out, nil
}

// Stat implements fs.StatFS. It fails for a link.
func (t *TreeFS) Stat(name string) (fs.FileInfo, error) {
	info, _, _, err := t.stat(name)
	if err == nil && info.mode&fs.ModeSymlink != 0 {
		err = errLinkNotFollowed
	}
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info, nil
}

// Lstat implements fs.ReadLinkFS.
func (t *TreeFS) Lstat(name string) (fs.FileInfo, error) {
	info, _, _, err := t.stat(name)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return info, nil
}

// ReadLink implements fs.ReadLinkFS. The target may be any path.
func (t *TreeFS) ReadLink(name string) (string, error) {
	fail := func(err error) (string, error) { return "", &fs.PathError{Op: "readlink", Path: name, Err: err} }
	info, owner, hash, err := t.stat(name)
	if err != nil {
		return fail(err)
	}
	if info.mode&fs.ModeSymlink == 0 {
		return fail(fs.ErrInvalid)
	}
	data, err := owner.objects.blob(hash)
	if err != nil {
		return fail(err)
	}
	return string(data), nil
}

func (t *TreeFS) info(entry object.TreeEntry) treeInfo {
	info := treeInfo{name: entry.Name, when: t.when}
	switch entry.Mode {
	case filemode.Dir:
		info.mode = fs.ModeDir | 0o755
	case filemode.Symlink:
		info.mode = fs.ModeSymlink | 0o777
	case filemode.Executable:
		info.mode = 0o755
	case filemode.Submodule:
		info.mode = fs.ModeIrregular
	default:
		info.mode = 0o644
	}
	return info
}
