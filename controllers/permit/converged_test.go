package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// TestConverged checks that an owner with an unchanged basis needs reviews only for objects that
// were held. An unfinished basis does not count.
func TestConverged(t *testing.T) {
	held, other := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "held"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "other"}
	unreviewed := apply.Held{Ref: held, Reason: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}}
	kept := []HeldObjects{{Objects: []apply.Held{unreviewed, {Ref: other, Reason: change.Reason{Code: landscapev1alpha1.HeldProtectedKind}}}}, {Objects: []apply.Held{unreviewed}}}
	converged := Converged{Done: 3}.End("a", 2, kept)
	for name, test := range map[string]struct {
		is, want     Converged
		held, others bool // need a review by basis a
	}{
		"never converged":       {Converged{}, Converged{}, true, true},
		"converged":             {converged, Converged{Basis: "a", Done: 3, Held: []string{"ConfigMap held"}}, true, false},
		"begun with it again":   {converged.Begin("a"), converged, true, false},
		"begun with another":    {converged.Begin("b"), Converged{Done: 3, Held: []string{"ConfigMap held"}}, true, true},
		"and back halfway":      {converged.Begin("b").Begin("a"), Converged{Done: 3, Held: []string{"ConfigMap held"}}, true, true},
		"no review is demanded": {converged.Begin(""), Converged{Done: 3, Held: []string{"ConfigMap held"}}, true, true},
		"the next is complete":  {converged.Begin("b").End("b", 4, nil).Begin("a").End("a", 5, nil), Converged{Basis: "a", Done: 5}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, test.is)
			assert.Equal(t, test.held, test.is.NeedsReview("a", held))
			assert.Equal(t, test.others, test.is.NeedsReview("a", other))
		})
	}
}
