package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// TreeFS presents the tree of a commit as an fs.FS. Symbolic links are seen but
// not followed: opening one is an error, so no path leaves the tree.
type TreeFS struct {
	tree *object.Tree
	when time.Time
	// mutex, because trees and stores of go-git keep what they found without one.
	mutex sync.Mutex
}

// Open implements fs.FS.
func (t *TreeFS) Open(name string) (fs.File, error) {
	fail := func(err error) (fs.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if name == "." {
		return &treeDir{info: treeInfo{name: ".", mode: fs.ModeDir | 0o755, when: t.when}, entries: t.entries(t.tree)}, nil
	}
	entry, err := t.tree.FindEntry(name)
	if err != nil {
		return fail(fs.ErrNotExist)
	}
	info := t.info(path.Base(name), *entry)
	switch {
	case entry.Mode == filemode.Dir:
		sub, err := t.tree.Tree(name)
		if err != nil {
			return fail(err)
		}
		return &treeDir{info: info, entries: t.entries(sub)}, nil
	case entry.Mode == filemode.Symlink:
		return fail(errors.New("symbolic links are not followed"))
	case !entry.Mode.IsFile():
		return fail(errors.New("submodules are not read"))
	}
	file, err := t.tree.File(name)
	if err != nil {
		return fail(err)
	}
	reader, err := file.Reader()
	if err != nil {
		return fail(err)
	}
	defer reader.Close()
	data, err := io.ReadAll(reader)
	if err != nil {
		return fail(err)
	}
	info.size = int64(len(data))
	return &treeFile{info: info, Reader: bytes.NewReader(data)}, nil
}

func (t *TreeFS) info(name string, entry object.TreeEntry) treeInfo {
	info := treeInfo{name: name, when: t.when}
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

func (t *TreeFS) entries(tree *object.Tree) []fs.DirEntry {
	out := make([]fs.DirEntry, 0, len(tree.Entries))
	for _, entry := range tree.Entries {
		info := t.info(entry.Name, entry)
		if entry.Mode.IsFile() && entry.Mode != filemode.Symlink {
			if file, err := tree.TreeEntryFile(&entry); err == nil {
				info.size = file.Size
			}
		}
		out = append(out, fs.FileInfoToDirEntry(info))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	return out
}

type treeInfo struct {
	name string
	mode fs.FileMode
	size int64
	when time.Time
}

func (i treeInfo) Name() string       { return i.name }
func (i treeInfo) Size() int64        { return i.size }
func (i treeInfo) Mode() fs.FileMode  { return i.mode }
func (i treeInfo) ModTime() time.Time { return i.when }
func (i treeInfo) IsDir() bool        { return i.mode.IsDir() }
func (i treeInfo) Sys() any           { return nil }

type treeFile struct {
	info treeInfo
	*bytes.Reader
}

func (f *treeFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *treeFile) Close() error               { return nil }

type treeDir struct {
	info    treeInfo
	entries []fs.DirEntry
	at      int
}

func (d *treeDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *treeDir) Close() error               { return nil }
func (d *treeDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *treeDir) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.entries[d.at:]
	if n <= 0 {
		d.at = len(d.entries)
		return append([]fs.DirEntry(nil), rest...), nil
	}
	if len(rest) == 0 {
		return nil, io.EOF
	}
	if n > len(rest) {
		n = len(rest)
	}
	d.at += n
	return append([]fs.DirEntry(nil), rest[:n]...), nil
}
