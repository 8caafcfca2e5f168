// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestConditions checks the conditions and the kstatus result of each situation.
func TestConditions(t *testing.T) {
	const a, b = "main@sha1:aaaa", "main@sha1:bbbb"
	for name, test := range map[string]struct {
		view  conditionInput
		ready string // status, reason and message
		kind  status.Status
	}{
		"new":              {conditionInput{}, "Unknown Pending: the first sync has not begun yet", status.InProgressStatus},
		"first sync":       {conditionInput{revisions: revisionNames{wanted: a, attempted: a}, current: progressState{syncProgress: "applying " + a}}, "Unknown Pending: applying " + a, status.InProgressStatus},
		"applied":          {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}}, "True Applied: " + a + " is applied", status.CurrentStatus},
		"new commit":       {conditionInput{revisions: revisionNames{wanted: b, attempted: b, applied: a}, current: progressState{syncProgress: "applying " + b}}, "Unknown Pending: applying " + b, status.InProgressStatus},
		"being read":       {conditionInput{revisions: revisionNames{wanted: b, attempted: b, applied: a}, readState: fetchState{isReading: true}, current: progressState{syncProgress: "reading bbbb"}}, "Unknown Pending: reading bbbb", status.InProgressStatus},
		"applied again":    {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, current: progressState{syncProgress: "applying " + a}}, "True Applied: " + a + " is applied", status.InProgressStatus},
		"invalid":          {conditionInput{revisions: revisionNames{wanted: b, attempted: b, applied: a}, readState: fetchState{validErr: newInvalidError("seed.yaml:3:4: no")}}, "False Invalid: seed.yaml:3:4: no; " + a + " stays applied", status.FailedStatus},
		"failed":           {conditionInput{revisions: revisionNames{wanted: b, attempted: b, applied: a}, lastSync: lastSyncState{problems: []string{"one", "two", "three", "four"}}}, "False ApplyFailed: one; two; three; and 1 more", status.InProgressStatus},
		"failed, closed":   {conditionInput{revisions: revisionNames{wanted: b, attempted: b, applied: a}, lastSync: lastSyncState{problems: []string{"one"}}, current: progressState{waitReason: "waiting for a window"}}, "False ApplyFailed: one; " + b + ": waiting for a window", status.InProgressStatus},
		"failed for good":  {conditionInput{revisions: revisionNames{wanted: b, attempted: b}, lastSync: lastSyncState{problems: []string{"one"}, isPermanent: true}}, "False ApplyFailed: one", status.FailedStatus},
		"held":             {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, pending: pendingState{heldCount: 2, heldText: "2 deletions and recreations wait for an approval"}}, "True Applied: " + a + " is applied; 2 deletions and recreations wait for an approval", status.CurrentStatus},
		"operations wait":  {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, pending: pendingState{operations: []string{"x", "y"}}}, "True Applied: " + a + " is applied; 2 operations wait to be started", status.CurrentStatus},
		"unhealthy":        {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, clusters: clusterState{unhealthy: []string{"garden/x: A: down"}}}, "False Unhealthy: garden/x: A: down", status.InProgressStatus},
		"drifted":          {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, clusters: clusterState{drift: []string{"Shoot a/b: spec.purpose is owned by x"}}}, "False DriftNotRepaired: the clusters differ from " + a + ": Shoot a/b: spec.purpose is owned by x", status.InProgressStatus},
		"source down":      {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, readState: fetchState{sourceErr: &source.Error{Reason: source.ReasonUnreachable, Message: "no answer"}}}, "False Unreachable: no answer; " + a + " stays applied", status.InProgressStatus},
		"forged":           {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, readState: fetchState{sourceErr: &source.Error{Reason: source.ReasonVerificationFailed, Permanent: true, Message: "unsigned"}}}, "False VerificationFailed: unsigned; " + a + " stays applied", status.FailedStatus},
		"forged commit":    {conditionInput{revisions: revisionNames{wanted: b, attempted: b, applied: a}, readState: fetchState{isUnread: true, sourceErr: &source.Error{Reason: source.ReasonVerificationFailed, Permanent: true, Message: "unsigned"}}}, "False VerificationFailed: unsigned; " + a + " stays applied", status.FailedStatus},
		"anew":             {conditionInput{revisions: revisionNames{attempted: a, applied: a}, current: progressState{awaitsVerdict: true}}, "Unknown Pending: it was not ready when the operator restarted, which now checks it again; " + a + " stays applied", status.InProgressStatus},
		"anew, it waits":   {conditionInput{revisions: revisionNames{wanted: b, attempted: a, applied: a}, current: progressState{awaitsVerdict: true, waitReason: "waiting for the next window"}}, "Unknown Waiting: waiting for the next window", status.InProgressStatus},
		"suspended":        {conditionInput{revisions: revisionNames{wanted: b, attempted: a, applied: a}, objectState: objectState{suspendReason: "suspended by me: x"}}, "Unknown Suspended: suspended by me: x", status.InProgressStatus},
		"waits for window": {conditionInput{revisions: revisionNames{wanted: b, attempted: a, applied: a}, current: progressState{waitReason: "waiting for the next window"}}, "True Waiting: " + a + " is applied; " + b + ": waiting for the next window", status.CurrentStatus},
		"first one waits":  {conditionInput{revisions: revisionNames{wanted: b}, current: progressState{waitReason: "waiting for the next window"}}, "Unknown Waiting: waiting for the next window", status.InProgressStatus},
		"not read yet":     {conditionInput{current: progressState{waitReason: "the revision is not known yet"}}, "Unknown Pending: the revision is not known yet", status.InProgressStatus},
		"pinned": {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a, excludedByPin: b, pin: &landscapev1alpha1.Pin{Revision: "aaaa", By: "me", Reason: "it crashes"}}},
			"True Applied: PINNED to aaaa by me (it crashes), " + b + " is not applied: " + a + " is applied", status.CurrentStatus},
		"loosened": {conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, lastSync: lastSyncState{notes: []string{"asks for less"}}}, "True Applied: " + a + " is applied; asks for less", status.CurrentStatus},
		"not kept": {conditionInput{revisions: revisionNames{wanted: b, attempted: a, applied: a}, current: progressState{waitReason: "waiting for the next window"}, lastSync: lastSyncState{maintainErr: errors.New("it is gone")}},
			"False NotKept: " + a + " was applied last and is not maintained now: it is gone", status.InProgressStatus},
		"in part": {conditionInput{revisions: revisionNames{wanted: b, attempted: a, applied: a, partial: b}}, "False ApplyFailed: the sync of " + b + " did not complete; " + b + " stays applied in part, on top of " + a, status.InProgressStatus},
		"in part, it waits": {conditionInput{revisions: revisionNames{wanted: b, attempted: a, applied: a, partial: b}, current: progressState{waitReason: "waiting for the next window"}},
			"False ApplyFailed: the sync of " + b + " did not complete; " + b + " stays applied in part, on top of " + a + "; " + b + ": waiting for the next window", status.InProgressStatus},
		"the first one is not kept": {conditionInput{revisions: revisionNames{wanted: b, attempted: b}, lastSync: lastSyncState{maintainErr: errors.New("no window is open")}},
			"False NotKept: no revision has been applied completely yet, and none is maintained now: no window is open", status.InProgressStatus},
		"misconfigured": {conditionInput{revisions: revisionNames{applied: a}, objectState: objectState{misconfiguration: "spec.source is not set"}}, "False Stalled: spec.source is not set; " + a + " stays applied", status.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Generation, l.Status.ObservedGeneration = 1, 1
			l.APIVersion, l.Kind = "landscape.pergola.dev/v1alpha1", "Landscape"
			l.Status.Conditions = updateConditions(condition.New(clocktesting.NewFakePassiveClock(noon), nil), nil, test.view)
			ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
			require.NotNil(t, ready)
			assert.Equal(t, test.ready, string(ready.Status)+" "+ready.Reason+": "+ready.Message)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l)
			require.NoError(t, err)
			result, err := status.Compute(&unstructured.Unstructured{Object: content})
			require.NoError(t, err)
			assert.Equal(t, test.kind, result.Status, result.Message)
			if test.view.readState.isReading || test.view.readState.isUnread {
				assert.EqualValues(t, "Unknown", condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeValid).Status)
			}
			again := updateConditions(condition.New(clocktesting.NewFakePassiveClock(noon), nil), l.Status.Conditions, test.view)
			assert.ElementsMatch(t, l.Status.Conditions, again, "the same view gives the same conditions")
		})
	}
}

// TestRequestReportsHeldDeletions: a request for a sync without news still reports held deletions.
func TestRequestReportsHeldDeletions(t *testing.T) {
	l := &landscapev1alpha1.Landscape{}
	l.Status.LastHandledSyncRequest = "now"
	const a = "main@sha1:aaaa"
	for _, test := range []struct {
		view  conditionInput
		phase string
	}{
		{conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}}, receiver.PhaseApplied},
		{conditionInput{revisions: revisionNames{wanted: a, attempted: a, applied: a}, pending: pendingState{heldCount: 2, heldText: "2 deletions and recreations wait for an approval"}}, receiver.PhaseHeld},
	} {
		l.Status.Conditions = updateConditions(condition.New(clocktesting.NewFakePassiveClock(noon), nil), nil, test.view)
		f := &objectFollower{syncRequest: "now"}
		var last receiver.Progress
		for range 3 {
			for _, p := range f.pollObject(l, nil, noon) {
				last = p
			}
		}
		assert.True(t, last.Done)
		assert.Equal(t, test.phase, last.Phase, last.Message)
	}
}

// TestPinnedText: the command that removes the pin can be copied verbatim.
func TestPinnedText(t *testing.T) {
	assert.Equal(t, "PINNED to abc by me (it crashes): no other revision is applied until it is unpinned (pergola rollback garden/prod --unpin)",
		pinnedText(&landscapev1alpha1.Pin{Revision: "abc", By: "me", Reason: "it crashes"}, "garden/prod"))
}
