// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// TestReviewPermitsOneRecreation checks that a review permits a recreation once, even if a new
// converger runs or the requested deletion takes long. Another review counts.
func TestReviewPermitsOneRecreation(t *testing.T) {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
	for name, test := range map[string]struct {
		result apply.ObjectResult
		held   int
	}{
		"recreated":                             {apply.ObjectResult{Action: apply.Recreated}, 1},
		"deleted":                               {apply.ObjectResult{Action: apply.Deleted}, 1},
		"told to go, and the time was up":       {apply.ObjectResult{Action: apply.Failed, DeleteRequested: true}, 1},
		"told to go, and on its way":            {apply.ObjectResult{Action: apply.Deleting, DeleteRequested: true}, 1},
		"it was not told":                       {apply.ObjectResult{Action: apply.Failed}, 0},
		"it waits until another object is gone": {apply.ObjectResult{Action: apply.Deleting, IsDeletionPending: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			passing := &RunMemory{}
			next := func(of string) (Gate, *RunLedger) {
				gate, o := NewRunLedger(Gate{}, NewReview(of, change.Plan{Items: []change.Item{{Action: change.Recreate, Cluster: "c", Object: ref}}}), passing)
				o.BeginRun()
				return gate, o
			}
			held := func(g Gate) int { return len(g.Judge("c", []change.Ref{ref}, 100).Held) }
			gate, o := next("a..b")
			require.Zero(t, held(gate))
			o.EndRun(false)
			gate, o = next("a..b")
			require.Zero(t, held(gate), "nothing has happened yet")
			test.result.Ref, test.result.Cluster = ref, "c"
			o.RecordResult(test.result)
			o.EndRun(false)
			gate, o = next("a..b")
			assert.Equal(t, test.held, held(gate))
			o.EndRun(true)
			gate, _ = next("b..c")
			assert.Zero(t, held(gate))
		})
	}
}

// TestWaitingObjectsNeedNewPermission checks that an object needs a new permission after it was
// declared again or deleted, but not after it was skipped.
func TestWaitingObjectsNeedNewPermission(t *testing.T) {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
	id := ApprovalID("c", ref)
	for action, waits := range map[apply.Action]bool{apply.HeldBack: true, apply.Failed: true, apply.Skipped: true, apply.Deleting: false, apply.Deleted: false,
		apply.Unchanged: false, apply.Configured: false, apply.AlreadyDeleted: false, apply.MovedToOtherSet: false} {
		for _, told := range []bool{false, true} {
			p := &RunMemory{}
			_, o := NewRunLedger(Gate{}, nil, p)
			o.RecordResult(apply.ObjectResult{Ref: ref, Cluster: "c", Action: apply.Deleting, IsDeletionPending: true})
			require.True(t, p.isWaiting(id))
			o.RecordResult(apply.ObjectResult{Ref: ref, Cluster: "c", Action: action, DeleteRequested: told})
			assert.Equal(t, waits && !told, p.isWaiting(id), "%s %v", action, told)
		}
	}
}
