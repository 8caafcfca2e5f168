// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// gitDir locates the files of a repository: own are those of one work tree (HEAD); common are those
// of all work trees (objects, references, configuration). They differ only for a linked work tree.
type gitDir struct{ own, common string }

// findGitDir returns the repository whose top is a folder, and false if there is none. Like git, it
// ignores a folder .git without a repository, and fails for a file .git that names none.
func findGitDir(top string) (gitDir, bool, error) {
	name := filepath.Join(top, git.GitDirName)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
		for _, dir := range []string{name, top} {
			if found, ok := openGitDir(dir); ok {
				return found, true, nil
			}
		}
		return gitDir{}, false, nil
	case err != nil:
		return gitDir{}, false, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return gitDir{}, false, err
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	if !ok {
		return gitDir{}, false, fmt.Errorf("the file %s does not name the folder of a repository: it has to begin with `gitdir: `", name)
	}
	found, ok := openGitDir(resolvePath(top, target))
	if !ok {
		return gitDir{}, false, fmt.Errorf("the file %s names %s, which is not a Git repository: run `git worktree repair` in the repository of the work tree", name, boundedLine(target, 200))
	}
	return found, true, nil
}

// openGitDir reports whether a folder contains a repository, and finds the common files.
func openGitDir(dir string) (gitDir, bool) {
	found := gitDir{own: dir, common: dir}
	if data, err := os.ReadFile(filepath.Join(dir, "commondir")); err == nil {
		found.common = resolvePath(dir, strings.TrimRight(string(data), "\r\n"))
	}
	if info, err := os.Stat(filepath.Join(found.own, "HEAD")); err != nil || info.IsDir() {
		return gitDir{}, false
	}
	for _, folder := range []string{found.objects(), filepath.Join(found.common, "refs")} {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return gitDir{}, false
		}
	}
	return found, true
}

func resolvePath(base, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(base, filepath.FromSlash(name))
}

func (d gitDir) objects() string { return filepath.Join(d.common, "objects") }

// gitStore reads a repository on disk.
type gitStore struct {
	repositoryFormat
	// references has only the references and the list of shallow commits.
	references   *filesystem.Storage
	objectStores *objectStores
}

// openStore opens the files of a repository. An unknown format is an error.
func openStore(dir gitDir) (*gitStore, error) {
	format, err := readFormat(filepath.Join(dir.common, "config"))
	if err != nil {
		return nil, err
	}
	unpacked := cache.NewObjectLRUDefault()
	stores, err := openObjectStores(dir.objects(), unpacked)
	if err != nil {
		return nil, err
	}
	var common billy.Filesystem
	if dir.common != dir.own {
		common = osfs.New(dir.common)
	}
	references := filesystem.NewStorage(dotgit.NewRepositoryFilesystem(osfs.New(dir.own), common), unpacked)
	stores.EncodedObjectStorer = references
	return &gitStore{repositoryFormat: format, references: references, objectStores: stores}, nil
}

// missingObjectHint explains why an object of an undamaged repository is missing and how to get it.
// The result is empty without a reason.
func (s *gitStore) missingObjectHint(root string) string {
	switch {
	case s.promisor != "":
		return fmt.Sprintf("the Git repository %s is a partial clone%s and lacks an object: `git fetch --refetch --no-filter %s` gets all of them; Pergola never fetches them", root, s.filter, s.promisor)
	case len(s.objectStores.missing) > 0:
		return fmt.Sprintf("the Git repository %s borrows objects from %s (objects/info/alternates), which does not exist: restore that folder, or clone without --reference and --shared",
			root, strings.Join(s.objectStores.missing, ", "))
	}
	return ""
}
