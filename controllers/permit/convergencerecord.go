// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"slices"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

// ConvergenceRecord records the last convergence of an owner on a seed. The owner needs no review
// while its basis, all its content from Git, is unchanged, except for objects that were held then.
// A review counts for one convergence of the owner.
type ConvergenceRecord struct {
	// GitDigest is the digest of the Git content of the convergence; it is empty while a
	// convergence with another basis is unfinished.
	GitDigest string `json:"basis,omitempty"`
	// CompletedChange is the number of the last change whose reviewed deletions are all done.
	CompletedChange int `json:"done,omitempty"`
	// HeldUnreviewed are objects that are held because no review has shown their deletion.
	HeldUnreviewed []string `json:"held,omitempty"`
}

// BeginConvergence prepares the record for a convergence. A new basis clears the old one: if Git
// reverted halfway, changes of the new basis would need no review.
func (c ConvergenceRecord) BeginConvergence(basis string) ConvergenceRecord {
	if c.GitDigest != basis {
		c.GitDigest = ""
	}
	return c
}

// EndConvergence completes the record after a convergence. complete is the number of the last
// change that was completely applied before the convergence began.
func (c ConvergenceRecord) EndConvergence(basis string, complete int, held []HeldObjects) ConvergenceRecord {
	return ConvergenceRecord{GitDigest: basis, CompletedChange: max(c.CompletedChange, complete), HeldUnreviewed: UnreviewedObjects(held)}
}

// IsReviewRequired reports whether the deletion of an object needs a review.
func (c ConvergenceRecord) IsReviewRequired(basis string, ref change.Ref) bool {
	return c.GitDigest != basis || slices.Contains(c.HeldUnreviewed, ref.String())
}

// UnreviewedObjects returns the objects that are held because no review has shown their deletion.
func UnreviewedObjects(held []HeldObjects) (out []string) {
	for _, h := range held {
		for _, o := range h.Objects {
			if o.Reason.Code == landscapev1alpha1.HeldNotReviewed {
				out = append(out, o.Ref.String())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
