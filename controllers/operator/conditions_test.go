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
		view  view
		ready string // status, reason and message
		kind  status.Status
	}{
		"new":              {view{}, "Unknown Pending: the first sync has not begun yet", status.InProgressStatus},
		"first sync":       {view{is: revisionsShown{wanted: a, attempted: a}, now: goingOn{syncing: "applying " + a}}, "Unknown Pending: applying " + a, status.InProgressStatus},
		"applied":          {view{is: revisionsShown{wanted: a, attempted: a, applied: a}}, "True Applied: " + a + " is applied", status.CurrentStatus},
		"new commit":       {view{is: revisionsShown{wanted: b, attempted: b, applied: a}, now: goingOn{syncing: "applying " + b}}, "Unknown Pending: applying " + b, status.InProgressStatus},
		"being read":       {view{is: revisionsShown{wanted: b, attempted: b, applied: a}, read: readShown{reading: true}, now: goingOn{syncing: "reading bbbb"}}, "Unknown Pending: reading bbbb", status.InProgressStatus},
		"applied again":    {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, now: goingOn{syncing: "applying " + a}}, "True Applied: " + a + " is applied", status.InProgressStatus},
		"invalid":          {view{is: revisionsShown{wanted: b, attempted: b, applied: a}, read: readShown{validErr: invalid("seed.yaml:3:4: no")}}, "False Invalid: seed.yaml:3:4: no; " + a + " stays applied", status.FailedStatus},
		"failed":           {view{is: revisionsShown{wanted: b, attempted: b, applied: a}, last: lastShown{problems: []string{"one", "two", "three", "four"}}}, "False ApplyFailed: one; two; three; and 1 more", status.InProgressStatus},
		"failed, closed":   {view{is: revisionsShown{wanted: b, attempted: b, applied: a}, last: lastShown{problems: []string{"one"}}, now: goingOn{waiting: "waiting for a window"}}, "False ApplyFailed: one; " + b + ": waiting for a window", status.InProgressStatus},
		"failed for good":  {view{is: revisionsShown{wanted: b, attempted: b}, last: lastShown{problems: []string{"one"}, permanent: true}}, "False ApplyFailed: one", status.FailedStatus},
		"held":             {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, withheld: withheld{held: 2, heldText: "2 deletions and recreations wait for an approval"}}, "True Applied: " + a + " is applied; 2 deletions and recreations wait for an approval", status.CurrentStatus},
		"operations wait":  {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, withheld: withheld{operations: []string{"x", "y"}}}, "True Applied: " + a + " is applied; 2 operations wait to be taken up", status.CurrentStatus},
		"unhealthy":        {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, found: foundShown{unhealthy: []string{"garden/x: A: down"}}}, "False Unhealthy: garden/x: A: down", status.InProgressStatus},
		"drifted":          {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, found: foundShown{drift: []string{"Shoot a/b: spec.purpose is owned by x"}}}, "False DriftNotRepaired: the clusters are not as " + a + " says: Shoot a/b: spec.purpose is owned by x", status.InProgressStatus},
		"source down":      {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, read: readShown{sourceErr: &source.Error{Reason: source.ReasonUnreachable, Message: "no answer"}}}, "False Unreachable: no answer; " + a + " stays applied", status.InProgressStatus},
		"forged":           {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, read: readShown{sourceErr: &source.Error{Reason: source.ReasonVerificationFailed, Permanent: true, Message: "unsigned"}}}, "False VerificationFailed: unsigned; " + a + " stays applied", status.FailedStatus},
		"forged commit":    {view{is: revisionsShown{wanted: b, attempted: b, applied: a}, read: readShown{unread: true, sourceErr: &source.Error{Reason: source.ReasonVerificationFailed, Permanent: true, Message: "unsigned"}}}, "False VerificationFailed: unsigned; " + a + " stays applied", status.FailedStatus},
		"anew":             {view{is: revisionsShown{attempted: a, applied: a}, now: goingOn{unsettled: true}}, "Unknown Pending: it was not ready when the operator was started anew, and is looked at again; " + a + " stays applied", status.InProgressStatus},
		"anew, it waits":   {view{is: revisionsShown{wanted: b, attempted: a, applied: a}, now: goingOn{unsettled: true, waiting: "waiting for the next window"}}, "Unknown Waiting: waiting for the next window", status.InProgressStatus},
		"suspended":        {view{is: revisionsShown{wanted: b, attempted: a, applied: a}, object: objectShown{suspended: "suspended by me: x"}}, "Unknown Suspended: suspended by me: x", status.InProgressStatus},
		"waits for window": {view{is: revisionsShown{wanted: b, attempted: a, applied: a}, now: goingOn{waiting: "waiting for the next window"}}, "True Waiting: " + a + " is applied; " + b + ": waiting for the next window", status.CurrentStatus},
		"first one waits":  {view{is: revisionsShown{wanted: b}, now: goingOn{waiting: "waiting for the next window"}}, "Unknown Waiting: waiting for the next window", status.InProgressStatus},
		"not read yet":     {view{now: goingOn{waiting: "the revision is not known yet"}}, "Unknown Pending: the revision is not known yet", status.InProgressStatus},
		"pinned": {view{is: revisionsShown{wanted: a, attempted: a, applied: a, newer: b, pin: &landscapev1alpha1.Pin{Revision: "aaaa", By: "me", Reason: "it crashes"}}},
			"True Applied: PINNED to aaaa by me (it crashes), " + b + " is not applied: " + a + " is applied", status.CurrentStatus},
		"loosened": {view{is: revisionsShown{wanted: a, attempted: a, applied: a}, last: lastShown{notes: []string{"asks for less"}}}, "True Applied: " + a + " is applied; asks for less", status.CurrentStatus},
		"not kept": {view{is: revisionsShown{wanted: b, attempted: a, applied: a}, now: goingOn{waiting: "waiting for the next window"}, last: lastShown{unkept: errors.New("it is gone")}},
			"False NotKept: " + a + " was applied last, and nothing keeps it now: it is gone", status.InProgressStatus},
		"in part": {view{is: revisionsShown{wanted: b, attempted: a, applied: a, halfway: b}}, "False ApplyFailed: the sync of " + b + " was not completed; " + b + " stays applied in part, on top of " + a, status.InProgressStatus},
		"in part, it waits": {view{is: revisionsShown{wanted: b, attempted: a, applied: a, halfway: b}, now: goingOn{waiting: "waiting for the next window"}},
			"False ApplyFailed: the sync of " + b + " was not completed; " + b + " stays applied in part, on top of " + a + "; " + b + ": waiting for the next window", status.InProgressStatus},
		"the first one is not kept": {view{is: revisionsShown{wanted: b, attempted: b}, last: lastShown{unkept: errors.New("no window is open")}},
			"False NotKept: no revision was applied completely yet, and nothing is kept now: no window is open", status.InProgressStatus},
		"misconfigured": {view{is: revisionsShown{applied: a}, object: objectShown{misconfigured: "spec.source is not set"}}, "False Stalled: spec.source is not set; " + a + " stays applied", status.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Generation, l.Status.ObservedGeneration = 1, 1
			l.APIVersion, l.Kind = "landscape.pergola.dev/v1alpha1", "Landscape"
			l.Status.Conditions = conditions(condition.New(clocktesting.NewFakePassiveClock(noon), nil), nil, test.view)
			ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
			require.NotNil(t, ready)
			assert.Equal(t, test.ready, string(ready.Status)+" "+ready.Reason+": "+ready.Message)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l)
			require.NoError(t, err)
			result, err := status.Compute(&unstructured.Unstructured{Object: content})
			require.NoError(t, err)
			assert.Equal(t, test.kind, result.Status, result.Message)
			if test.view.read.reading || test.view.read.unread {
				assert.EqualValues(t, "Unknown", condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeValid).Status)
			}
			again := conditions(condition.New(clocktesting.NewFakePassiveClock(noon), nil), l.Status.Conditions, test.view)
			assert.ElementsMatch(t, l.Status.Conditions, again, "the same view gives the same conditions")
		})
	}
}

// TestStillHeld: a request for a sync without news still reports held deletions.
func TestStillHeld(t *testing.T) {
	l := &landscapev1alpha1.Landscape{}
	l.Status.LastHandledSyncRequest = "now"
	const a = "main@sha1:aaaa"
	for _, test := range []struct {
		view  view
		phase string
	}{
		{view{is: revisionsShown{wanted: a, attempted: a, applied: a}}, receiver.PhaseApplied},
		{view{is: revisionsShown{wanted: a, attempted: a, applied: a}, withheld: withheld{held: 2, heldText: "2 deletions and recreations wait for an approval"}}, receiver.PhaseHeld},
	} {
		l.Status.Conditions = conditions(condition.New(clocktesting.NewFakePassiveClock(noon), nil), nil, test.view)
		f := &objectFollower{request: "now"}
		var last receiver.Progress
		for range 3 {
			for _, p := range f.look(l, nil, noon) {
				last = p
			}
		}
		assert.True(t, last.Done)
		assert.Equal(t, test.phase, last.Phase, last.Message)
	}
}

// TestPinnedText: the command that removes the pin can be copied verbatim.
func TestPinnedText(t *testing.T) {
	assert.Equal(t, "PINNED to abc by me (it crashes): nothing else is applied before it is taken off (pergola rollback garden/prod --unpin)",
		pinnedText(&landscapev1alpha1.Pin{Revision: "abc", By: "me", Reason: "it crashes"}, "garden/prod"))
}
