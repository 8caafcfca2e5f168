// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/source"
)

// Commit is the commit that last changed a line.
type Commit struct {
	Hash    string    `json:"hash"`
	Author  string    `json:"author"`
	Date    time.Time `json:"date"`
	Subject string    `json:"subject"`
}

// Result is a commit, or the reason why there is none. With a commit, Reason says what is
// uncertain.
type Result struct {
	Commit *Commit `json:"commit,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// Limits are the limits of the work for one line. The zero values mean the defaults.
type Limits struct {
	// Commits is the maximum number of commits to read; the default is 20,000.
	Commits int
	// FileSize is the maximum size of a file in bytes; the default is 4 MiB.
	FileSize int64
}

// Repository finds the commits of lines.
type Repository struct {
	repo   *source.Repository
	limits Limits
}

// Open opens the repository that contains a folder.
func Open(dir string, limits Limits) (*Repository, error) {
	repo, err := source.Open(dir)
	if err != nil {
		return nil, err
	}
	if limits.Commits <= 0 {
		limits.Commits = 20_000
	}
	if limits.FileSize <= 0 {
		limits.FileSize = 4 << 20
	}
	return &Repository{repo: repo, limits: limits}, nil
}

// BlameLine returns the commit that wrote a line (from 1) of a file in the work tree. It returns an
// error for obstacles, such as a damaged repository or the end of ctx.
func (r *Repository) BlameLine(ctx context.Context, file string, line int) (Result, error) {
	var answer Result
	err := panics.AsError(func() (err error) { // go-git panics on a damaged repository
		answer, err = r.blameLine(ctx, file, line)
		return err
	})()
	if err != nil {
		return Result{}, fmt.Errorf("blame line %d of %s: %w", line, file, err)
	}
	return answer, nil
}

func (r *Repository) blameLine(ctx context.Context, file string, line int) (Result, error) {
	name, err := r.pathInRepository(file)
	if err != nil {
		return Result{}, err
	}
	commit, err := r.repo.Head()
	if err != nil {
		return Result{}, err
	}
	if commit == nil {
		return Result{Reason: "not committed yet"}, nil
	}
	at := linePosition{commit: commit, file: name, line: line}
	committed, err := at.fileText(r.limits.FileSize)
	if errors.Is(err, gitobject.ErrFileNotFound) {
		return Result{Reason: "not committed yet"}, nil
	}
	if err != nil {
		return Result{Reason: err.Error()}, nil
	}
	current, err := r.workTreeText(file, committed)
	if err != nil {
		return Result{}, err
	}
	former, same := matchLine(committed, current, line)
	if !same {
		return Result{Reason: "not committed yet"}, nil
	}
	at.line = former
	return r.findCommit(ctx, at)
}

// pathInRepository returns the path of a file in the repository.
func (r *Repository) pathInRepository(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	rel, err := filepath.Rel(r.repo.Root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("it is not in the repository %s", r.repo.Root)
	}
	return filepath.ToSlash(rel), nil
}

// workTreeText returns the current text of the file; without a work tree, the committed text.
func (r *Repository) workTreeText(file, committed string) (string, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return committed, nil
	}
	if err != nil {
		return "", err
	}
	if info.Size() > r.limits.FileSize {
		return "", fmt.Errorf("it is larger than %d bytes", r.limits.FileSize)
	}
	data, err := os.ReadFile(file)
	return string(data), err
}

// findCommit goes from commit to commit while the line is unchanged.
func (r *Repository) findCommit(ctx context.Context, at linePosition) (Result, error) {
	for range r.limits.Commits {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		former, moved, end, err := r.positionInParent(ctx, at)
		if err != nil {
			return Result{}, err
		}
		if !moved {
			return Result{Commit: newCommit(at.commit), Reason: end}, nil
		}
		at = former
	}
	return Result{Reason: fmt.Sprintf("older than the last %d commits, which were searched", r.limits.Commits)}, nil
}

// Reasons why the real commit may be older.
const (
	reasonShallow = "or before it: the clone is shallow, and its history ends here"
	reasonPartial = "or before it: the clone is partial, and lacks the previous content of the file; `git fetch --refetch --no-filter` fetches it"
)

// positionInParent returns the position of the line in a parent commit. end says why parents are
// missing in the clone, if they are.
func (r *Repository) positionInParent(ctx context.Context, at linePosition) (former linePosition, moved bool, end string, err error) {
	var parents []*gitobject.Commit
	for i := range at.commit.ParentHashes {
		parent, err := at.commit.Parent(i)
		if errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, gitobject.ErrParentNotFound) {
			end = reasonShallow
			continue
		}
		if err != nil {
			return at, false, end, err
		}
		same, err := isSameFile(at.commit, parent, at.file)
		if err != nil {
			return at, false, end, err
		}
		if same {
			return linePosition{parent, at.file, at.line}, true, "", nil
		}
		parents = append(parents, parent)
	}
	if len(parents) == 0 {
		return at, false, end, nil
	}
	now, err := at.fileText(r.limits.FileSize)
	if err != nil {
		return at, false, end, err
	}
	for _, parent := range parents {
		before := linePosition{commit: parent, file: at.file}
		text, err := before.fileText(r.limits.FileSize)
		if errors.Is(err, gitobject.ErrFileNotFound) {
			if before.file, err = previousName(ctx, at.commit, parent, at.file); errors.Is(err, plumbing.ErrObjectNotFound) {
				end = reasonPartial
			}
			if err != nil || before.file == "" {
				continue // without a comparison there is no other name
			}
			text, err = before.fileText(r.limits.FileSize)
		}
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			end = reasonPartial
		}
		if err != nil {
			continue // too large to follow further
		}
		if line, same := matchLine(text, now, at.line); same {
			before.line = line
			return before, true, "", nil
		}
	}
	return at, false, end, nil
}

func newCommit(c *gitobject.Commit) *Commit {
	subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return &Commit{Hash: c.Hash.String(), Author: c.Author.Name, Date: c.Author.When.UTC(), Subject: subject}
}
