// SPDX-License-Identifier: Apache-2.0

// Package filearchive packs files into one sequence of bytes, and unpacks it again.
package filearchive

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
)

// Pack packs files reproducibly: sorted by name, uncompressed, without times.
func Pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := entry.Write(files[name]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing %d files: %w", len(files), err)
	}
	return out.Bytes(), nil
}

// Unpack reads an archive of untrusted origin. More than maxFiles files are an error.
func Unpack(data []byte, maxFiles int) (map[string][]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	if len(r.File) > maxFiles {
		return nil, fmt.Errorf("has %d files, but at most %d are allowed", len(r.File), maxFiles)
	}
	files := map[string][]byte{}
	for _, f := range r.File {
		if !fs.ValidPath(f.Name) || f.Method != zip.Store || f.UncompressedSize64 > uint64(len(data)) {
			return nil, fmt.Errorf("has an entry %q that Pack does not write", f.Name)
		}
		entry, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		files[f.Name], err = io.ReadAll(io.LimitReader(entry, int64(len(data))))
		_ = entry.Close() // reads from memory
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return files, nil
}

// FS returns files as a file system.
func FS(files map[string][]byte) (fs.FS, error) {
	data, err := Pack(files)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
}
