// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

// archiveFS is an unpacked archive. One file without a name holds all contents one after the other;
// file names exist only in memory.
type archiveFS struct {
	file  *os.File
	nodes map[string]*archiveNode
}

type archiveNode struct {
	info    treeInfo
	offset  int64
	entries []fs.DirEntry
}

// unpack unpacks a compressed archive. It accepts only folders and regular files, and no name may
// lead out of the archive.
func unpack(ctx context.Context, packed io.Reader, dir string, when time.Time, limits Limits) (fs.FS, error) {
	file, err := os.CreateTemp(dir, incomingPrefix)
	if err != nil {
		return nil, fmt.Errorf("unpack the artifact: %w", err)
	}
	// Without a name, the file disappears when the process ends.
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("unpack the artifact: %w", err)
	}
	a := &archiveFS{file: file, nodes: map[string]*archiveNode{".": {info: treeInfo{name: ".", mode: fs.ModeDir | 0o755, when: when}}}}
	if err := a.unpack(ctx, packed, when, limits); err != nil {
		_ = file.Close()
		return nil, err
	}
	a.linkEntries()
	return a, nil
}

func (a *archiveFS) unpack(ctx context.Context, packed io.Reader, when time.Time, limits Limits) error {
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		return newError(ReasonInvalid, "the artifact is not a gzip archive")
	}
	archive := tar.NewReader(&limitedReader{Reader: unzipped, remaining: limits.Unpacked})
	var offset int64
	for {
		if err := ctx.Err(); err != nil {
			return connectionError(ctx, "unpack the artifact", err)
		}
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLimitExceeded):
			return newError(ReasonTooLarge, "the artifact is too large: more than %d MiB unpacked", limits.Unpacked/mebibyte)
		case err != nil:
			return newError(ReasonInvalid, "the artifact is a broken archive")
		}
		name := path.Clean(strings.TrimPrefix(header.Name, "./"))
		if header.Typeflag == tar.TypeXGlobalHeader || name == "." && header.Typeflag == tar.TypeDir {
			continue
		}
		if !fs.ValidPath(name) || strings.Contains(header.Name, "\\") || strings.Count(name, "/") > maxFolderDepth {
			return newError(ReasonInvalid, "the artifact has a file with the name %q, which leads out of the artifact or is not valid", boundedLine(header.Name, 100))
		}
		if len(a.nodes) > limits.Files {
			return newError(ReasonTooLarge, "the artifact has more than %d files", limits.Files)
		}
		info := treeInfo{name: path.Base(name), when: when, mode: 0o644}
		switch header.Typeflag {
		case tar.TypeDir:
			info.mode = fs.ModeDir | 0o755
		case tar.TypeReg:
			if header.Size > limits.File {
				return newError(ReasonTooLarge, "the artifact has a file of more than %d MiB: %s", limits.File/mebibyte, boundedLine(name, 100))
			}
			info.size = header.Size
			if header.FileInfo().Mode()&0o111 != 0 {
				info.mode = 0o755
			}
		default:
			return newError(ReasonInvalid, "the artifact has %q, which is a link or a device: only folders and files are supported", boundedLine(name, 100))
		}
		if err := a.addNode(name, info, offset); err != nil {
			return err
		}
		n, err := io.Copy(a.file, archive)
		switch {
		case errors.Is(err, errLimitExceeded):
			return newError(ReasonTooLarge, "the artifact is too large: more than %d MiB unpacked", limits.Unpacked/mebibyte)
		case err != nil:
			return newError(ReasonInvalid, "the artifact is a broken archive")
		}
		offset += n
	}
}

// addNode adds a node and its parent folders, which archives may omit.
func (a *archiveFS) addNode(name string, info treeInfo, offset int64) error {
	if former := a.nodes[name]; former != nil {
		if former.info.IsDir() && info.IsDir() {
			return nil
		}
		return newError(ReasonInvalid, "the artifact has %q twice", boundedLine(name, 100))
	}
	a.nodes[name] = &archiveNode{info: info, offset: offset}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		above := a.nodes[parent]
		if above == nil {
			a.nodes[parent] = &archiveNode{info: treeInfo{name: path.Base(parent), mode: fs.ModeDir | 0o755, when: info.when}}
			continue
		}
		if !above.info.IsDir() {
			return newError(ReasonInvalid, "the artifact has %q as a file and as a folder", boundedLine(parent, 100))
		}
		break
	}
	return nil
}

// linkEntries fills the entries of the folders.
func (a *archiveFS) linkEntries() {
	for name, node := range a.nodes {
		if name != "." {
			parent := a.nodes[path.Dir(name)]
			parent.entries = append(parent.entries, fs.FileInfoToDirEntry(node.info))
		}
	}
	for _, node := range a.nodes {
		sort.Slice(node.entries, func(i, j int) bool { return node.entries[i].Name() < node.entries[j].Name() })
	}
}

func (a *archiveFS) node(op, name string) (*archiveNode, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	node := a.nodes[name]
	if node == nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return node, nil
}

// Open implements fs.FS.
func (a *archiveFS) Open(name string) (fs.File, error) {
	node, err := a.node("open", name)
	if err != nil {
		return nil, err
	}
	if node.info.IsDir() {
		return &treeDir{info: node.info, entries: node.entries}, nil
	}
	data, err := a.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &treeFile{info: node.info, Reader: bytes.NewReader(data)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (a *archiveFS) ReadFile(name string) ([]byte, error) {
	node, err := a.node("open", name)
	if err != nil {
		return nil, err
	}
	if node.info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDirectory}
	}
	data := make([]byte, node.info.size)
	if _, err := a.file.ReadAt(data, node.offset); err != nil && (!errors.Is(err, io.EOF) || node.info.size > 0) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	if isLFSPointer(data) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: lfsPointerError(name)}
	}
	return data, nil
}

// ReadDir implements fs.ReadDirFS.
func (a *archiveFS) ReadDir(name string) ([]fs.DirEntry, error) {
	node, err := a.node("open", name)
	if err != nil {
		return nil, err
	}
	if !node.info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDirectory}
	}
	return slices.Clone(node.entries), nil
}

// Stat implements fs.StatFS.
func (a *archiveFS) Stat(name string) (fs.FileInfo, error) {
	node, err := a.node("stat", name)
	if err != nil {
		return nil, err
	}
	return node.info, nil
}

// Lstat implements fs.ReadLinkFS.
func (a *archiveFS) Lstat(name string) (fs.FileInfo, error) { return a.Stat(name) }

// ReadLink implements fs.ReadLinkFS. There are no links.
func (a *archiveFS) ReadLink(name string) (string, error) {
	if _, err := a.node("readlink", name); err != nil {
		return "", err
	}
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

// removeOldArtifacts removes incomplete files and all but the most recently used artifacts.
func removeOldArtifacts(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the cache: %w", err)
	}
	var kept []fs.FileInfo
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), incomingPrefix) {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
			continue
		}
		if info, err := entry.Info(); err == nil {
			kept = append(kept, info)
		}
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].ModTime().After(kept[j].ModTime()) })
	// Each artifact has a manifest and a layer.
	for _, info := range kept[min(len(kept), 2*maxArtifacts):] {
		_ = os.Remove(filepath.Join(dir, info.Name()))
	}
	return nil
}
