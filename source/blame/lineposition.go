// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// linePosition is a line of a file in a commit.
type linePosition struct {
	commit *gitobject.Commit
	file   string
	line   int
}

// fileText of the whole file, up to a limit in bytes.
func (p linePosition) fileText(limit int64) (string, error) {
	tree, err := p.commit.Tree()
	if err != nil {
		return "", err
	}
	entry, err := tree.FindEntry(p.file)
	if err != nil {
		if ignoreMissing(err) == nil {
			err = gitobject.ErrFileNotFound
		}
		return "", err
	}
	// Tree.File would report a content that a partial clone lacks as a file that the commit lacks.
	blob, err := tree.TreeEntryFile(entry)
	if err != nil {
		return "", err
	}
	if blob.Size > limit {
		return "", fmt.Errorf("the file is larger than %d bytes", limit)
	}
	return blob.Contents()
}

// isSameFile compares a file in two commits. It descends only into trees that differ.
func isSameFile(a, b *gitobject.Commit, name string) (bool, error) {
	if a.TreeHash == b.TreeHash {
		return true, nil
	}
	left, err := a.Tree()
	if err != nil {
		return false, err
	}
	right, err := b.Tree()
	if err != nil {
		return false, err
	}
	steps := strings.Split(name, "/")
	for i, step := range steps {
		l, err := left.FindEntry(step)
		if err != nil {
			return false, ignoreMissing(err)
		}
		r, err := right.FindEntry(step)
		if err != nil {
			return false, ignoreMissing(err)
		}
		if l.Hash == r.Hash {
			return l.Mode == r.Mode, nil
		}
		if i == len(steps)-1 {
			return false, nil
		}
		if left, err = left.Tree(step); err != nil {
			return false, ignoreMissing(err)
		}
		if right, err = right.Tree(step); err != nil {
			return false, ignoreMissing(err)
		}
	}
	return false, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, gitobject.ErrEntryNotFound) || errors.Is(err, gitobject.ErrDirectoryNotFound) || errors.Is(err, gitobject.ErrFileNotFound) {
		return nil
	}
	return err
}

// maxRenameCandidates bounds the files to compare for a rename.
const maxRenameCandidates = 200

// previousName returns the name of a file in the parent, if the commit renamed it.
func previousName(ctx context.Context, commit, parent *gitobject.Commit, name string) (string, error) {
	from, err := parent.Tree()
	if err != nil {
		return "", err
	}
	to, err := commit.Tree()
	if err != nil {
		return "", err
	}
	changes, err := gitobject.DiffTreeWithOptions(ctx, from, to, &gitobject.DiffTreeOptions{
		DetectRenames: true, RenameScore: 60, RenameLimit: maxRenameCandidates,
	})
	if err != nil {
		return "", err
	}
	for _, change := range changes {
		if change.To.Name == name && change.From.Name != name {
			return change.From.Name, nil
		}
	}
	return "", nil
}
