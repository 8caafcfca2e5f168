// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
)

// TestApprovalsCountOnce checks that a passed approval is used, in the order of approval, and that
// an id that is no longer approved is forgotten.
func TestApprovalsCountOnce(t *testing.T) {
	for name, test := range map[string]struct {
		approved, used, passed []string
		// open before, used afterwards
		open, after []string
	}{
		"nothing passed":           {approved: []string{"a"}, open: []string{"a"}},
		"passed":                   {approved: []string{"a", "b"}, passed: []string{"a"}, open: []string{"a", "b"}, after: []string{"a"}},
		"passed again":             {approved: []string{"a", "a-2"}, used: []string{"a"}, passed: []string{"a"}, open: []string{"a"}, after: []string{"a", "a-2"}},
		"used":                     {approved: []string{"a"}, used: []string{"a"}, passed: []string{"a"}, after: []string{"a"}},
		"one of two is used":       {approved: []string{"a", "b"}, used: []string{"a"}, open: []string{"b"}, after: []string{"a"}},
		"used twice":               {approved: []string{"a", "a-2"}, used: []string{"a", "a-2"}, passed: []string{"a"}, after: []string{"a", "a-2"}},
		"a third time":             {approved: []string{"a", "a-2", "a-3"}, used: []string{"a", "a-2"}, open: []string{"a"}, after: []string{"a", "a-2"}},
		"taken back":               {approved: []string{"b"}, used: []string{"a"}, open: []string{"b"}},
		"the second before one":    {approved: []string{"a-2"}, passed: []string{"a"}},
		"of another one":           {approved: []string{"b-2"}, used: []string{"a"}},
		"more than there were yet": {approved: []string{"a", "a-3"}, used: []string{"a"}, passed: []string{"a"}, after: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			approvals := Approvals{Given: test.approved, Used: test.used}
			assert.Equal(t, test.open, approvals.ActiveIDs())
			for _, id := range test.passed {
				if shown, counts := approvals.IsApproved(id); counts {
					approvals.Used = append(approvals.Used, shown)
				}
			}
			assert.ElementsMatch(t, test.after, approvals.DropWithdrawn().Used)
		})
	}
	assert.Empty(t, Approvals{Used: []string{""}}.NextID(""), "what has no id gets none")
}

// TestLapsedApprovals checks that an approval lapses if its object or any object of its set is not
// held.
func TestLapsedApprovals(t *testing.T) {
	held := func(id string) apply.HeldObject {
		return apply.HeldObject{Ref: apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: id}, ApprovalID: id}
	}
	now := HeldIDs([]HeldObjects{
		{Cluster: "virtual", Objects: []apply.HeldObject{held("b"), held("d")}, Approval: "both"}, {Cluster: "virtual", Objects: []apply.HeldObject{held("e"), held("")}},
	})
	assert.Equal(t, map[string]bool{"b": true, "d": true, "both": true, "e": true}, now)
	for name, test := range map[string]struct{ approved, used, want []string }{
		"not held any more":        {[]string{"a"}, nil, []string{"a"}},
		"held":                     {[]string{"b", "d", "e"}, nil, nil},
		"together":                 {[]string{"both"}, nil, nil},
		"together with others":     {[]string{"all"}, nil, []string{"all"}},
		"used, and held again":     {[]string{"b", "b-2"}, []string{"b"}, nil},
		"used, and not held again": {[]string{"a", "a-2"}, []string{"a"}, []string{"a-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, Approvals{Given: test.approved, Used: test.used}.LapsedIDs(now))
		})
	}
}

// TestLapsedAfterRun checks that an id lapses when its objects are no longer all held, and counts
// again when they are.
func TestLapsedAfterRun(t *testing.T) {
	ids := func(ids ...string) map[string]bool {
		out := map[string]bool{}
		for _, id := range ids {
			out[id] = true
		}
		return out
	}
	lapsed := LapsedAfterRun(nil, ids("a", "b", "both", "passed"), ids("b"), ids("passed"))
	assert.Equal(t, ids("a", "both"), lapsed)
	lapsed = LapsedAfterRun(lapsed, ids("b"), ids("a", "both"), ids("passed"))
	assert.Equal(t, ids("b"), lapsed)
}
