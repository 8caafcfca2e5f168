// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
)

// maxShownFiles limits the names of uncommitted files.
const maxShownFiles = 3

// Describe describes a landscape by its commit and uncommitted files.
func Describe(dir string, l *landscapes.Landscape) string {
	repository, err := source.Open(dir)
	if errors.Is(err, source.ErrNoRepository) {
		return dir + ", which is not in a Git repository"
	}
	if err != nil {
		return fmt.Sprintf("%s (%v)", dir, err)
	}
	home, err := repository.RelativePath(dir)
	if err != nil {
		return dir
	}
	folders := []string{home}
	for _, layer := range l.Layers {
		folders = append(folders, path.Join(home, layer))
	}
	commit, files, err := repository.Uncommitted(folders...)
	switch {
	case err != nil:
		return fmt.Sprintf("%s (%v)", dir, err)
	case commit == "":
		return dir + ", which has no commit yet"
	case len(files) == 0:
		return dir + " at " + commit[:7]
	}
	for i, f := range files {
		if rel, err := filepath.Rel(filepath.FromSlash(home), filepath.FromSlash(f)); err == nil {
			files[i] = filepath.ToSlash(rel)
		}
	}
	noun := "files"
	if len(files) == 1 {
		noun = "file"
	}
	names := strings.Join(files[:min(len(files), maxShownFiles)], ", ")
	if len(files) > maxShownFiles {
		names += " …"
	}
	return fmt.Sprintf("%s at %s, with uncommitted changes in %d %s (%s)", dir, commit[:7], len(files), noun, names)
}
