// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pergola-dev/pergola/landscapes"
)

// Folders returns the folders of a landscape and its layers, as paths in its file system.
func Folders(l *landscapes.Landscape) []string {
	out := []string{l.Path}
	for _, layer := range l.Layers {
		if folder := path.Join(l.Path, layer); folder != l.Path {
			out = append(out, folder)
		}
	}
	return out
}

// Fingerprint returns a hash over name, size and time of the files below the folders. It ignores
// hidden files, which do not belong to a landscape.
func Fingerprint(fsys fs.FS, folders ...string) (string, error) {
	sum := sha256.New()
	for _, folder := range folders {
		err := fs.WalkDir(fsys, folder, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && name != folder {
				return nil // removed during the walk: the next one shows that
			}
			if err != nil {
				return err
			}
			if name != folder && strings.HasPrefix(d.Name(), ".") {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if !d.Type().IsRegular() {
				return nil
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(sum, name, info.Size(), info.ModTime().UnixNano())
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read the files of %s: %w", folder, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
