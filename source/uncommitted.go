// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Uncommitted compares folders of the work tree (slash-separated paths inside the repository) with
// the last commit. It returns that commit, empty before the first one, and the changed, new and
// deleted files in order. It ignores links, and hidden files that are not in the commit.
func (r *Repository) Uncommitted(folders ...string) (commit string, files []string, err error) {
	defer r.recoverPanic(&err)
	tree := &object.Tree{}
	last, err := r.Head()
	if err == nil && last != nil {
		commit = last.Hash.String()
		tree, err = last.Tree()
	}
	if err != nil {
		return "", nil, fmt.Errorf("read the last commit of %s: %w", r.Root, err)
	}
	found := map[string]bool{}
	for _, folder := range folders {
		if err := r.findDifferences(tree, path.Clean(folder), found); err != nil {
			return "", nil, fmt.Errorf("compare %s with the last commit: %w", folder, err)
		}
	}
	for name := range found {
		files = append(files, name)
	}
	sort.Strings(files)
	return commit, files, nil
}

// findDifferences adds the files of a folder that differ from the tree.
func (r *Repository) findDifferences(tree *object.Tree, folder string, found map[string]bool) error {
	known := map[string]bool{}
	sub := tree
	if folder != "." {
		var err error
		if sub, err = tree.Tree(folder); errors.Is(err, object.ErrDirectoryNotFound) {
			sub = &object.Tree{}
		} else if err != nil {
			return err
		}
	}
	err := sub.Files().ForEach(func(f *object.File) error {
		name := path.Join(folder, f.Name)
		known[name] = true
		if f.Mode == filemode.Symlink {
			return nil
		}
		same, err := r.isSameFile(f, name)
		if err == nil && !same {
			found[name] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	root := os.DirFS(r.Root)
	return fs.WalkDir(root, folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case name != folder && strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") && !known[name]:
			found[name] = true
		}
		return nil
	})
}

func (r *Repository) isSameFile(f *object.File, name string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || int64(len(data)) != f.Size {
		return false, err
	}
	committed, err := f.Contents()
	return err == nil && bytes.Equal([]byte(committed), data), err
}
