package permit

import (
	"slices"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

// Converged records the last convergence of an owner on a seed. The owner needs no review while its
// basis, all its content from Git, is unchanged, except for objects that were held then. A review
// counts for one convergence of the owner.
type Converged struct {
	// Basis of the convergence; empty while a convergence with another basis is unfinished.
	Basis string `json:"basis,omitempty"`
	// Done is the number of the last change whose reviewed deletions are all done.
	Done int `json:"done,omitempty"`
	// Held are objects that are held because no review has shown their deletion.
	Held []string `json:"held,omitempty"`
}

// Begin prepares the record for a convergence. A new basis clears the old one: if Git reverted
// halfway, changes of the new basis would need no review.
func (c Converged) Begin(basis string) Converged {
	if c.Basis != basis {
		c.Basis = ""
	}
	return c
}

// End completes the record after a convergence. complete is the number of the last change that was
// completely applied before the convergence began.
func (c Converged) End(basis string, complete int, held []HeldObjects) Converged {
	return Converged{Basis: basis, Done: max(c.Done, complete), Held: Unreviewed(held)}
}

// NeedsReview reports whether the deletion of an object needs a review.
func (c Converged) NeedsReview(basis string, ref change.Ref) bool {
	return c.Basis != basis || slices.Contains(c.Held, ref.String())
}

// Unreviewed returns the objects that are held because no review has shown their deletion.
func Unreviewed(held []HeldObjects) (out []string) {
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
