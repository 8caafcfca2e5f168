package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pergola-dev/pergola/internal/panics"
)

// Repository is a local Git repository.
type Repository struct {
	// Root is the top of the work tree; of a bare repository, its folder.
	Root    string
	repo    *git.Repository
	objects *objects
}

// Open finds the repository that contains a folder. The folder may be missing in the work tree: revisions may have it.
func Open(dir string) (*Repository, error) {
	abs, err := resolve(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	for root := abs; ; root = filepath.Dir(root) {
		_, noGit := os.Lstat(filepath.Join(root, git.GitDirName))
		if noGit == nil || isBare(root) {
			repo, err := git.PlainOpenWithOptions(root, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
			if err != nil {
				return nil, fmt.Errorf("open the Git repository of %s: %w", dir, err)
			}
			return &Repository{Root: root, repo: repo, objects: &objects{storer: repo.Storer, advice: damagedRepository(root), seen: map[plumbing.Hash]bool{}}}, nil
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("%s is in no Git repository: run git init and commit the landscape first", dir)
		}
	}
}

// isBare tells whether a folder is a repository without a work tree.
func isBare(dir string) bool {
	for name, folder := range map[string]bool{"HEAD": false, "objects": true, "refs": true} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() != folder {
			return false
		}
	}
	return true
}

// resolve gives the absolute path of a folder without links. What does not exist of it stays as it is written.
func resolve(dir string) (string, error) {
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

// Rel gives the slash-separated path of a folder inside the repository. The folder may be missing.
func (r *Repository) Rel(dir string) (string, error) {
	abs, err := resolve(dir)
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

// At resolves a branch, tag, abbreviated commit, HEAD~2 and the like.
func (r *Repository) At(rev string) (_ *Revision, err error) {
	defer r.caught(&err)
	if commit, folder, ok := strings.Cut(rev, ":"); ok {
		return nil, fmt.Errorf("revision %q names %q in a commit, not a commit: give the commit alone (%s); the folder is the argument", rev, folder, commit)
	}
	hash, err := r.repo.ResolveRevision(plumbing.Revision(rev))
	if err != nil && r.refersTo(rev) {
		return nil, fmt.Errorf("revision %q: %w", rev, r.objects.failed(err))
	}
	if err != nil {
		cause := ""
		if !errors.Is(err, plumbing.ErrReferenceNotFound) && !errors.Is(err, plumbing.ErrObjectNotFound) {
			cause = " (" + plain(err).Error() + ")"
		}
		return nil, fmt.Errorf("revision %q: not found in %s%s: give a branch, a tag or a commit%s", rev, r.Root, cause, r.shallow())
	}
	commit, err := r.repo.CommitObject(*hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fmt.Errorf("revision %q is no commit of %s: give a branch, a tag or a commit%s", rev, r.Root, r.shallow())
	}
	if err == nil {
		_, err = commit.Tree()
	}
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w", rev, r.objects.failed(err))
	}
	return &Revision{Commit: commit.Hash.String(), FS: newTreeFS(r.objects, commit.TreeHash, commit.Committer.When)}, nil
}

// refersTo tells whether there is a branch or tag of a name, or the name is HEAD of one.
func (r *Repository) refersTo(name string) bool {
	for _, rule := range plumbing.RefRevParseRules {
		if _, err := r.repo.Reference(plumbing.ReferenceName(fmt.Sprintf(rule, name)), true); err == nil {
			return true
		}
	}
	return false
}

// caught makes an error of a panic of go-git, which believes much of a damaged repository. It has to be deferred itself.
func (r *Repository) caught(err *error) {
	if p := recover(); p != nil {
		*err = r.objects.failed(panics.Safe(func() error { panic(p) })())
	}
}

// shallow is a hint where the repository has only the last commits, as checkouts of pipelines often do.
func (r *Repository) shallow() string {
	if commits, err := r.repo.Storer.Shallow(); err != nil || len(commits) == 0 {
		return ""
	}
	return "; the clone is shallow and has only the last commits: `git fetch --unshallow` gets the others"
}
