package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// Repository is a local Git repository.
type Repository struct {
	// Root is the top of the work tree.
	Root string
	repo *git.Repository
}

// Open finds the repository that contains a folder.
func Open(dir string) (*Repository, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	repo, err := git.PlainOpenWithOptions(abs, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%s is in no Git repository: run git init and commit the landscape first", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the Git repository of %s: %w", dir, err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		return nil, fmt.Errorf("open the work tree of %s: %w", dir, err)
	}
	return &Repository{Root: tree.Filesystem.Root(), repo: repo}, nil
}

// Rel gives the slash-separated path of a folder inside the repository.
func (r *Repository) Rel(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
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
func (r *Repository) At(rev string) (*Revision, error) {
	hash, err := r.repo.ResolveRevision(plumbing.Revision(rev))
	if err != nil {
		return nil, fmt.Errorf("revision %q: not found in %s: give a branch, a tag or a commit", rev, r.Root)
	}
	commit, err := r.repo.CommitObject(*hash)
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w", rev, err)
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w", rev, err)
	}
	return &Revision{Commit: commit.Hash.String(), FS: &TreeFS{tree: tree, when: commit.Committer.When}}, nil
}
