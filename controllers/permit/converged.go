package permit

import (
	"slices"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

// Converged is how an owner on a seed was converged last. It needs no review as long as its basis,
// all of it that comes from Git, is the same, except for objects that were held then. A review that
// the owner was converged with does not count again.
type Converged struct {
	// Basis that it was converged with; empty from when another one begins until that one is done.
	Basis string `json:"basis,omitempty"`
	// Done is the number of the last change of which all is done that its review has shown.
	Done int `json:"done,omitempty"`
	// Held are objects that are held because no review has shown that they go.
	Held []string `json:"held,omitempty"`
}

// Begin prepares the record for a convergence. Another basis clears the former one: if Git went
// back to it halfway, changes of the new one would pass unseen.
func (c Converged) Begin(basis string) Converged {
	if c.Basis != basis {
		c.Basis = ""
	}
	return c
}

// End completes the record after a convergence, with the number of the last change that was applied
// completely when it began.
func (c Converged) End(basis string, complete int, held []HeldObjects) Converged {
	return Converged{Basis: basis, Done: max(c.Done, complete), Held: Unreviewed(held)}
}

// NeedsReview reports whether an object may go by a review only.
func (c Converged) NeedsReview(basis string, ref change.Ref) bool {
	return c.Basis != basis || slices.Contains(c.Held, ref.String())
}

// Unreviewed are the objects that are held because no review has shown that they go.
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
