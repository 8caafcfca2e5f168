// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// TestFinishApprovals: the approvals of a failed sync are used up, too, because its deletions may
// have succeeded.
func TestFinishApprovals(t *testing.T) {
	for name, complete := range map[string]bool{"went well": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			s := &landscapeReconciler{object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}}
			s.object.Spec.Approved = []string{"a", "a-2", "b"}
			s.status.desired.UsedApprovals = []string{"a", "a-2", "withdrawn"}
			j := &job{permissions: jobPermissions{approved: []string{"c", "seed/c"}, usedApprovals: []string{"a-2"}}}
			spent, lapsed := s.finishApprovals(j, &landscape.RunReport{}, complete)
			assert.Equal(t, []string{"a-2"}, spent)
			assert.Equal(t, map[bool][]string{true: {"c"}}[complete], lapsed, "once a whole sync has seen what is held; of one on a seed its gardenlet says so")
			assert.Equal(t, append([]string{"a", "a-2"}, lapsed...), s.status.desired.UsedApprovals, "what is not approved any more can be given anew")
			assert.Empty(t, j.permissions.usedApprovals)
		})
	}
}

func TestUsedApprovalsText(t *testing.T) {
	assert.Empty(t, UsedApprovalsText(nil))
	assert.Equal(t, "approvals used: a, b-2", UsedApprovalsText([]string{"a", "b-2"}))
	assert.Equal(t, "approvals used: 1, 2, 3, 4, 5, and 2 more", UsedApprovalsText([]string{"1", "2", "3", "4", "5", "6", "7"}))
}

// TestAddPreviouslyHeld: a sync that fails early forgets no held deletion.
func TestAddPreviouslyHeld(t *testing.T) {
	before := []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Secret default/seen", Reason: "old", Why: change.Reason{Detail: "old"}, Approval: "a"}, {Cluster: "runtime", Object: "Namespace unseen", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "b-2"},
		{Cluster: "runtime", Object: "Namespace passed", Approval: "c"}, {Cluster: "runtime", Object: "Namespace one", Reason: "protected", Approval: "e", Together: "g"},
		{Cluster: "runtime", Object: "Namespace two", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "f", Together: "g"}, {Cluster: "virtual", Object: "Seed gone", Reason: "its file no longer exists", Why: change.Reason{Detail: "its file no longer exists"}},
	}
	report := &landscape.RunReport{Held: []permit.HeldObjects{{Cluster: "virtual", Approval: "d", Objects: []apply.HeldObject{{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "seen"}, Reason: change.Reason{Detail: "new"}, ApprovalID: "d"}}}}}
	(&job{permissions: jobPermissions{usedApprovals: []string{"c"}}}).addPreviouslyHeld(report, before)
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{
		{Cluster: "virtual", Object: "Secret default/seen", Reason: "new", Why: change.Reason{Detail: "new"}, Approval: "d"}, {Cluster: "runtime", Object: "Namespace unseen", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "b-2"},
		{Cluster: "runtime", Object: "Namespace one", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "e", Together: "g"}, {Cluster: "runtime", Object: "Namespace two", Reason: "protected", Why: change.Reason{Detail: "protected"}, Approval: "f", Together: "g"},
		{Cluster: "virtual", Object: "Seed gone", Reason: "its file no longer exists", Why: change.Reason{Detail: "its file no longer exists"}},
	}, heldDeletionsOf(report, permit.Approvals{Used: []string{"b"}}))
}
