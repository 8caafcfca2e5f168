// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

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

// treeEntry is a file in its folder. Its size is read on demand.
type treeEntry struct {
	info    treeInfo
	hash    plumbing.Hash
	objects *objectReader
}

func (e treeEntry) Name() string      { return e.info.name }
func (e treeEntry) IsDir() bool       { return e.info.IsDir() }
func (e treeEntry) Type() fs.FileMode { return e.info.mode.Type() }
func (e treeEntry) String() string    { return fs.FormatDirEntry(e) }

func (e treeEntry) Info() (fs.FileInfo, error) {
	info := e.info
	if !info.mode.IsRegular() {
		return info, nil
	}
	size, err := e.objects.size(e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: info.name, Err: err}
	}
	info.size = size
	return info, nil
}

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
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errIsDirectory}
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
