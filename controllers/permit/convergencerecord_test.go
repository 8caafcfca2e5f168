// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// TestConvergenceRecordNeedsReview checks that an owner with an unchanged basis needs reviews only
// for objects that were held. An unfinished basis does not count.
func TestConvergenceRecordNeedsReview(t *testing.T) {
	held, other := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "held"}, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "other"}
	unreviewed := apply.HeldObject{Ref: held, Reason: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}}
	kept := []HeldObjects{{Objects: []apply.HeldObject{unreviewed, {Ref: other, Reason: change.Reason{Code: landscapev1alpha1.HeldProtectedKind}}}}, {Objects: []apply.HeldObject{unreviewed}}}
	converged := ConvergenceRecord{CompletedChange: 3}.EndConvergence("a", 2, kept)
	for name, test := range map[string]struct {
		is, want     ConvergenceRecord
		held, others bool // need a review by basis a
	}{
		"never converged":       {ConvergenceRecord{}, ConvergenceRecord{}, true, true},
		"converged":             {converged, ConvergenceRecord{GitDigest: "a", CompletedChange: 3, HeldUnreviewed: []string{"ConfigMap held"}}, true, false},
		"begun with it again":   {converged.BeginConvergence("a"), converged, true, false},
		"begun with another":    {converged.BeginConvergence("b"), ConvergenceRecord{CompletedChange: 3, HeldUnreviewed: []string{"ConfigMap held"}}, true, true},
		"and back halfway":      {converged.BeginConvergence("b").BeginConvergence("a"), ConvergenceRecord{CompletedChange: 3, HeldUnreviewed: []string{"ConfigMap held"}}, true, true},
		"no review is demanded": {converged.BeginConvergence(""), ConvergenceRecord{CompletedChange: 3, HeldUnreviewed: []string{"ConfigMap held"}}, true, true},
		"the next is complete":  {converged.BeginConvergence("b").EndConvergence("b", 4, nil).BeginConvergence("a").EndConvergence("a", 5, nil), ConvergenceRecord{GitDigest: "a", CompletedChange: 5}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, test.is)
			assert.Equal(t, test.held, test.is.IsReviewRequired("a", held))
			assert.Equal(t, test.others, test.is.IsReviewRequired("a", other))
		})
	}
}
