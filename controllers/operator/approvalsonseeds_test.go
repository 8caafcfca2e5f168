// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// TestApprovalCountsOnItsClusterOnly: a seed that reports the id of another cluster's deletion gets
// an approval for itself only.
func TestApprovalCountsOnItsClusterOnly(t *testing.T) {
	id := permit.ApprovalID(landscape.Runtime, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "zz"})
	held := heldInReports(map[string]*seedpublication.SeedReport{
		"eu-1": {Held: []seedpublication.HeldObject{{Object: "ConfigMap garden/harmless", Reason: change.Reason{Detail: "why"}, Approval: id}}},
		// This seed has the name of an operator's cluster.
		landscape.Runtime: {Held: []seedpublication.HeldObject{{Object: "ConfigMap garden/other", Reason: change.Reason{Detail: "why"}, Approval: "000000000000"}}},
	})
	require.Len(t, held, 1)
	given, err := resolveApproval(held, id, false)
	require.NoError(t, err)
	assert.Equal(t, "eu-1/"+id, given)
	l := &landscapev1alpha1.Landscape{}
	l.Spec.Approved = []string{given, "222222222222", "eu/333333333333", "eu-1/444444444444-2"}
	assert.Equal(t, []string{"222222222222"}, operatorApprovals(l, nil).ActiveIDs(), "the gate of the operator does not know it")
	assert.Equal(t, []string{id, "444444444444-2"}, permit.ApprovalsForSeed("eu-1", l.Spec.Approved))
	assert.Equal(t, []string{"333333333333"}, permit.ApprovalsForSeed("eu", l.Spec.Approved))
	assert.Empty(t, permit.ApprovalsForSeed("eu-2", l.Spec.Approved))
	assert.Contains(t, approveCommandFor(held, "garden/demo"), "pergola approve garden/demo eu-1/"+id+" approves them")
}

// TestResolveApproval: an id without a cluster is accepted if it is unambiguous.
func TestResolveApproval(t *testing.T) {
	held := []landscapev1alpha1.HeldDeletion{
		{Cluster: "runtime", Approval: "a", Together: "all"}, {Cluster: "virtual", Approval: "b"}, {Cluster: "eu-1", Approval: "c", Together: "d"}, {Cluster: "eu-1", Approval: "e", Together: "d"},
		{Cluster: "eu-1", Approval: "twice"}, {Cluster: "runtime", Approval: "twice"}, {Cluster: "eu-2", Approval: "seeds"}, {Cluster: "eu-1", Approval: "seeds"}, {Cluster: "virtual"},
	}
	for _, test := range []struct {
		given       string
		onSeed      bool
		want, fails string
	}{
		{given: "a", want: "a"}, {given: "all", want: "all"}, {given: "runtime/a", want: "a"}, {given: "c", want: "eu-1/c"}, {given: "d", want: "eu-1/d"}, {given: "eu-1/c", want: "eu-1/c"},
		{given: "eu-2/c", fails: "no held deletion has the id"}, {given: "virtual/a", fails: "no held deletion has the id"}, {given: "", fails: "no held deletion has the id"}, {given: "virtual/", fails: "no held deletion has the id"},
		{given: "twice", fails: "eu-1/twice or runtime/twice"}, {given: "runtime/twice", want: "twice"}, {given: "eu-1/twice", want: "eu-1/twice"},
		{given: "seeds", fails: "eu-2/seeds or eu-1/seeds"},
		{given: "new", onSeed: true, fails: "SEED/new"}, {given: "a", onSeed: true, fails: "SEED/a"}, {given: "c", onSeed: true, want: "eu-1/c"}, {given: "eu-3/new", onSeed: true, want: "eu-3/new"},
		{given: "twice", onSeed: true, want: "eu-1/twice"}, {given: "/new", onSeed: true, fails: "SEED/"},
	} {
		got, err := resolveApproval(held, test.given, test.onSeed)
		if test.fails != "" {
			assert.ErrorContains(t, err, test.fails, test.given)
			continue
		}
		require.NoError(t, err, test.given)
		assert.Equal(t, test.want, got, test.given)
	}
}

// TestDroppedReportEntriesAreReported: dropped entries of a report are reported.
func TestDroppedReportEntriesAreReported(t *testing.T) {
	held := heldInReports(map[string]*seedpublication.SeedReport{"eu-1": {Dropped: 2}, "eu-2": nil})
	const text = "the report of seed eu-1 has invalid entries, which are ignored: 2"
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{{Cluster: "eu-1", Object: "Seed eu-1", Reason: text, Why: change.Reason{Code: landscapev1alpha1.HeldIncompleteReport, Detail: text}}}, held)
	assert.Zero(t, countAwaitingApproval(held))
	assert.Contains(t, heldOnSeedsText(held), "has invalid entries")
	held = heldInReports(map[string]*seedpublication.SeedReport{"eu-1": {HeldMore: 7, Held: []seedpublication.HeldObject{{Object: "ConfigMap a/b", Reason: change.Reason{Detail: "r"}, Approval: "1"}}}})
	assert.Equal(t, "1 deletion or recreation on seed eu-1 waits for an approval; Seed eu-1 on seed eu-1: 7 more are held: see Events DeletionHeld", heldOnSeedsText(held))
	assert.Equal(t, 8, countAwaitingApproval(held))
}
