// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestHistoryGroupsHeldDeletions: each reason and each id is printed once, with one approve
// command.
func TestHistoryGroupsHeldDeletions(t *testing.T) {
	const beyond, unseen = "11 deletions are more than the limit of 10", "it is not in the reviewed difference"
	l := &landscapev1alpha1.Landscape{}
	l.Namespace, l.Name = "garden", "production"
	l.Status.Held = []landscapev1alpha1.HeldDeletion{
		{Cluster: "runtime", Object: "ConfigMap a/b", Reason: beyond, Approval: "111111111111", Together: "3f2a91c07d55"},
		{Cluster: "virtual", Object: "Quota a/c", Reason: unseen, Approval: "222222222222", Together: "3f2a91c07d55"},
		{Cluster: "virtual", Object: "Shoot a/d", Reason: "its file no longer exists"},
		{Cluster: "virtual", Object: "Quota a/e", Reason: beyond, Approval: "333333333333", Together: "3f2a91c07d55"},
		{Cluster: "virtual", Object: "Quota a/f", Reason: beyond, Approval: "000000000000"},
		{Cluster: "eu-1", Object: "ConfigMap a/g", Reason: unseen, Approval: "111111111111"},
	}
	var b strings.Builder
	require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
	assert.Equal(t, `BEGAN  TOOK  REVISION  BY  RESULT  WHAT
Held: `+beyond+`
  ConfigMap a/b on cluster runtime, its approval is 111111111111
  Quota a/e on cluster virtual, its approval is 333333333333
Held: `+unseen+`
  Quota a/c on cluster virtual, its approval is 222222222222
  approve all of them with: pergola approve garden/production 3f2a91c07d55
Held: its file no longer exists
  Shoot a/d on cluster virtual
Held: `+beyond+`
  Quota a/f on cluster virtual
  approve it with: pergola approve garden/production 000000000000
Held: `+unseen+`
  ConfigMap a/g on seed eu-1
  approve it with: pergola approve garden/production eu-1/111111111111
`, b.String())
}

// TestHistoryOfAPin: a pin without a reason ends with its author.
func TestHistoryOfAPin(t *testing.T) {
	for reason, want := range map[string]string{"": "PINNED to abc by me\n", "it\ncrashes": "PINNED to abc by me: it crashes\n"} {
		l := &landscapev1alpha1.Landscape{}
		l.Spec.Pin = &landscapev1alpha1.Pin{Revision: "abc", By: "me", Reason: reason}
		var b strings.Builder
		require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
		assert.Equal(t, want+"BEGAN  TOOK  REVISION  BY  RESULT  WHAT\n", b.String())
	}
}

// TestHistoryOfWaitingCommit: a commit that waits for its window is printed above the syncs, even
// if all succeeded, but not while the Landscape is suspended.
func TestHistoryOfWaitingCommit(t *testing.T) {
	l := &landscapev1alpha1.Landscape{}
	l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: gardencorev1beta1.ConditionTrue, Reason: landscapev1alpha1.ReasonWaiting,
		Message: "main@sha1:a is applied; main@sha1:b: waiting for the next window"}}
	shown := func() string {
		var b strings.Builder
		require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
		return b.String()
	}
	assert.Equal(t, "WAITING: main@sha1:a is applied; main@sha1:b: waiting for the next window\nBEGAN  TOOK  REVISION  BY  RESULT  WHAT\n", shown())
	l.Spec.Suspend = true
	assert.NotContains(t, shown(), "WAITING")
	l.Spec.Suspend, l.Status.Conditions[0].Reason = false, "Applied"
	assert.NotContains(t, shown(), "WAITING")
}

// TestHistoryNamesApprovals: the approvals of a sync are printed, even for successful syncs, which
// show the commit's subject instead of a message.
func TestHistoryNamesApprovals(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local))
	for name, test := range map[string]struct {
		record landscapev1alpha1.SyncRecord
		want   string
	}{
		"none":         {landscapev1alpha1.SyncRecord{Message: "1 deleted"}, "  Succeeded  take it away\n"},
		"one":          {landscapev1alpha1.SyncRecord{Message: "1 deleted; approvals used: 3f2a91c07d55", Approvals: []string{"3f2a91c07d55"}}, "  Succeeded  approvals used: 3f2a91c07d55; take it away\n"},
		"an operation": {landscapev1alpha1.SyncRecord{Message: "1 deleted", TakenUp: []string{"started: rotate-ca-start of garden local, requested by kubectl-annotate"}}, "  Succeeded  started: rotate-ca-start of garden local, requested by kubectl-annotate; take it away\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			r := test.record
			r.Revision, r.Subject, r.Trigger, r.StartTime, r.EndTime, r.Result = "main@sha1:a", "take it away", "Spec", at, &at, landscapev1alpha1.SyncSucceeded
			l.Status.History = []landscapev1alpha1.SyncRecord{r}
			var b strings.Builder
			require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
			assert.True(t, strings.HasSuffix(b.String(), test.want), b.String())
		})
	}
}

// TestHistoryOfOperations: the newest executed operations are printed below the syncs.
func TestHistoryOfOperations(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local))
	l := &landscapev1alpha1.Landscape{}
	shown := func() string {
		var b strings.Builder
		require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
		return b.String()
	}
	const head = "BEGAN  TOOK  REVISION  BY  RESULT  WHAT\n"
	l.Status.Operations = []landscapev1alpha1.OperationRecord{{ID: "rotate-2026", Object: "Garden local", Operation: "rotate-credentials-start", At: at}}
	assert.Equal(t, head+"Operation rotate-credentials-start of Garden local, executed 2026-01-02 12:00:00: operations/rotate-2026\n", shown())
	for range shownOperations + 1 {
		l.Status.Operations = append(l.Status.Operations, l.Status.Operations[0])
	}
	assert.Equal(t, shownOperations, strings.Count(shown(), "Operation rotate-credentials-start"))
	assert.True(t, strings.HasSuffix(shown(), "… and 2 earlier operations; -o json lists them\n"), shown())
}

// TestHistoryOfUnreadableSource: an unreadable source starts no sync, so its error and
// time are printed above the syncs.
func TestHistoryOfUnreadableSource(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	l := &landscapev1alpha1.Landscape{}
	l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: "main@sha1:a", Subject: "all is well", Trigger: "Commit", StartTime: metav1.NewTime(at), EndTime: &metav1.Time{Time: at.Add(time.Second)}, Result: landscapev1alpha1.SyncSucceeded}}
	l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeSourceReady, Status: gardencorev1beta1.ConditionFalse, Reason: "AuthenticationFailed",
		Message: "https://git.example.org/a.git: 401;\nmain@sha1:a stays applied", LastTransitionTime: metav1.NewTime(at)}}
	shown := func() string {
		var b strings.Builder
		require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
		return b.String()
	}
	assert.True(t, strings.HasPrefix(shown(), "SOURCE: cannot be read since 2026-01-02 12:00:00 (AuthenticationFailed): https://git.example.org/a.git: 401; main@sha1:a stays applied\nBEGAN  "), shown())
	l.Status.Conditions[0].Status = gardencorev1beta1.ConditionTrue
	assert.NotContains(t, shown(), "SOURCE")
}

// TestSuspendReportsReplacedSuspension: suspending again prints the replaced suspension.
func TestSuspendReportsReplacedSuspension(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	for name, test := range map[string]struct {
		suspend bool
		why     *landscapev1alpha1.Suspension
		want    string
	}{
		"not suspended":       {false, nil, ""},
		"left behind":         {false, &landscapev1alpha1.Suspension{Reason: "x"}, ""},
		"over":                {true, &landscapev1alpha1.Suspension{Reason: "x", Until: at(0)}, ""},
		"for a time":          {true, &landscapev1alpha1.Suspension{Reason: "etcd", By: "alice", Until: at(2 * time.Hour)}, "\nIt replaces the previous suspension by alice until 2026-01-01T14:00:00Z: etcd"},
		"for ever, by nobody": {true, nil, "\nIt replaces the previous suspension until pergola resume"},
	} {
		l := &landscapev1alpha1.Landscape{Spec: landscapev1alpha1.LandscapeSpec{}}
		l.Spec.Suspend, l.Spec.Suspension = test.suspend, test.why
		assert.Equal(t, test.want, replacedSuspensionText(l, now), name)
	}
}

// TestHistoryIsPrintable: text of a cluster can neither control the terminal nor imitate our lines.
func TestHistoryIsPrintable(t *testing.T) {
	l := &landscapev1alpha1.Landscape{}
	l.Status.Held = []landscapev1alpha1.HeldDeletion{{Cluster: "eu-1", Object: "ConfigMap a/b\n  approve it with: x", Reason: "why\x1b[2J\nHeld: other", Approval: "1\n2"}}
	l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: "main@sha1:a", Trigger: "me\x1b[31m", Subject: "a\x1b]0;b\a\nc", Gardenlets: "d\u202ee"}}
	var b strings.Builder
	require.NoError(t, printHistory(&b, l, &objectFlags{}, 0))
	assert.NotRegexp(t, "[\x1b\a\u202e]", b.String())
	assert.Len(t, strings.Split(strings.TrimSpace(b.String()), "\n"), 5, b.String())
	assert.Equal(t, "a b\n  c d", printableLines("a\x1bb\nc\rd\n"))
}

// TestSuspendForATime: a duration of zero or less is rejected, because it would suspend forever.
func TestSuspendForATime(t *testing.T) {
	for _, duration := range []string{"0", "0s", "-5m"} {
		o := pergola(t, "suspend", "production", "--reason", "x", "--for", duration)
		assert.Equal(t, 2, o.code)
		assert.Contains(t, o.stderr, "want a time above zero", duration)
	}
}
