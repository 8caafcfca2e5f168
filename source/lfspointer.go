// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"io/fs"
)

const (
	lfsPointerPrefix = "version https://git-lfs.github.com/spec/"
	// maxLFSPointerSize is the size below which a file may be a pointer, by the specification of
	// Git LFS.
	maxLFSPointerSize = 1024
)

// isLFSPointer reports whether the content is a Git LFS pointer.
func isLFSPointer(data []byte) bool {
	return len(data) < maxLFSPointerSize && bytes.HasPrefix(data, []byte(lfsPointerPrefix))
}

func lfsPointerError(name string) error {
	return newError(ReasonLFSUnsupported, "%s is a pointer of Git LFS, which is not supported: commit the file itself (git lfs untrack, git add --renormalize)", name)
}

// CheckFiles reports missing folders of a Snapshot and unreadable files in them: Git LFS pointers
// and submodules that were not fetched. The folders are those of a landscape and its layers. It
// joins the errors of all folders. It reads files that may be pointers; a loader that reads all
// files needs CheckFiles only for its better message.
func CheckFiles(fsys fs.FS, folders ...string) error {
	var found []error
	for _, name := range folders {
		err := fs.WalkDir(fsys, name, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch {
			case d.Type()&fs.ModeIrregular != 0:
				found = append(found, submoduleMissing(name))
				return nil
			case !d.Type().IsRegular():
				return nil
			}
			info, err := d.Info()
			if err != nil || info.Size() >= maxLFSPointerSize {
				return err
			}
			_, err = fs.ReadFile(fsys, name)
			if e, ok := errors.AsType[*Error](err); ok {
				found = append(found, e)
				return nil
			}
			return err
		})
		if err != nil {
			found = append(found, err)
		}
	}
	return errors.Join(found...)
}
