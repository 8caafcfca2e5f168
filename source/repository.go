// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/pergola-dev/pergola/internal/panics"
)

// Repository is a local Git repository.
type Repository struct {
	*gitStore
	// Root is the top of the work tree; for a bare repository, its folder.
	Root    string
	objects *objectReader
	// program resolves revisions that go-git cannot; it is nil if git is not installed.
	program *gitProgram
}

// ErrNoRepository is Open's error about a folder outside any Git repository.
var ErrNoRepository = errors.New("is not in a Git repository")

// Open finds the repository that contains a folder. The folder may be missing in the work tree,
// because a revision may have it. The error is ErrNoRepository if there is none, otherwise it says
// why the repository cannot be read.
func Open(dir string) (*Repository, error) {
	abs, err := absoluteRealPath(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	for root := abs; ; root = filepath.Dir(root) {
		files, found, err := findGitDir(root)
		if err == nil && !found {
			if root == filepath.Dir(root) {
				return nil, fmt.Errorf("%s %w: run git init and commit the landscape first", dir, ErrNoRepository)
			}
			continue
		}
		var s *gitStore
		if err == nil {
			s, err = openStore(files)
		}
		if err != nil {
			return nil, fmt.Errorf("open the Git repository of %s: %w", dir, err)
		}
		return &Repository{Root: root, gitStore: s, program: newGitProgram(root),
			objects: &objectReader{storer: s.objectStores, advice: damagedRepositoryAdvice(root), missingObjectHint: s.missingObjectHint(root), knownHashes: map[plumbing.Hash]bool{}}}, nil
	}
}

// absoluteRealPath returns the absolute path of a folder without links. Missing parts stay
// unchanged.
func absoluteRealPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for parent := abs; ; parent = filepath.Dir(parent) {
		resolved, err := filepath.EvalSymlinks(parent)
		if errors.Is(err, fs.ErrNotExist) && parent != filepath.Dir(parent) {
			continue
		}
		if err != nil {
			return "", err
		}
		missing, err := filepath.Rel(parent, abs)
		return filepath.Join(resolved, missing), err
	}
}

// RelativePath returns the slash-separated path of a folder inside the repository. The folder may
// be missing.
func (r *Repository) RelativePath(dir string) (string, error) {
	abs, err := absoluteRealPath(dir)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.Root, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(os.PathSeparator)) {
		return "", fmt.Errorf("%s is not inside the repository %s", dir, r.Root)
	}
	return filepath.ToSlash(rel), nil
}

// Revision is a commit as a file system.
type Revision struct {
	Commit string
	FS     *TreeFS
}

// At reads the commit of a revision, for example a branch, a tag, an abbreviated commit, HEAD~2 or
// main@{1}, like `git rev-parse`. If the revision does not name one commit, the error says which
// part is wrong.
func (r *Repository) At(rev string) (_ *Revision, err error) {
	defer r.recoverPanic(&err)
	hash, err := r.resolve(rev)
	if err != nil {
		return nil, err
	}
	commit, err := r.objects.commit(hash)
	if err == nil {
		_, err = r.objects.tree(commit.TreeHash)
	}
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w", rev, err)
	}
	return &Revision{Commit: hash.String(), FS: newTreeFS(r.objects, commit.TreeHash, commit.Committer.When)}, nil
}

// Head reads the commit that is checked out; nil before the first commit.
func (r *Repository) Head() (_ *object.Commit, err error) {
	defer r.recoverPanic(&err)
	var hash plumbing.Hash
	if r.usesReftable {
		hash, err = r.program.resolveRevision("HEAD")
		if _, none := errors.AsType[*unknownRevisionError](err); none {
			return nil, nil
		}
	} else if head, failed := storer.ResolveReference(r.references, plumbing.HEAD); errors.Is(failed, plumbing.ErrReferenceNotFound) {
		return nil, nil
	} else if err = failed; err == nil {
		hash = head.Hash()
	}
	if err != nil {
		return nil, err
	}
	return r.objects.commit(hash)
}

// recoverPanic turns a panic of go-git about a damaged repository into an error. It must be
// deferred directly.
func (r *Repository) recoverPanic(err *error) {
	if p := recover(); p != nil {
		*err = r.objects.recordDamage(panics.AsError(func() error { panic(p) })())
	}
}

// shallowHint returns a hint if the repository has only the last commits, as in many CI checkouts.
func (r *Repository) shallowHint() string {
	if commits, err := r.references.Shallow(); err != nil || len(commits) == 0 {
		return ""
	}
	return "; the clone is shallow and has only the last commits: `git fetch --unshallow` gets the others"
}
