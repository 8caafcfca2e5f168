// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// MergeBase returns the merge base of two revisions: the difference from there is what one side
// changed, ignoring later changes of the other. If there are several, it returns the first by name.
func (r *Repository) MergeBase(a, b string) (_ string, err error) {
	defer r.recoverPanic(&err)
	var commits [2]*object.Commit
	for i, rev := range []string{a, b} {
		hash, err := r.resolve(rev)
		if err != nil {
			return "", err
		}
		if commits[i], err = r.objects.commit(hash); err != nil {
			return "", err
		}
	}
	bases, err := commits[0].MergeBase(commits[1])
	if err != nil {
		return "", fmt.Errorf("find the merge base of %s and %s: %w%s", a, b, err, r.shallowHint())
	}
	best := ""
	for _, base := range bases {
		if name := base.Hash.String(); best == "" || strings.Compare(name, best) < 0 {
			best = name
		}
	}
	if best == "" {
		return "", fmt.Errorf("revisions %s and %s have no commit in common%s", a, b, r.shallowHint())
	}
	return best, nil
}
