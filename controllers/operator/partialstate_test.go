// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// newTestReconciler returns a syncer without an operator, with its status only in memory.
func newTestReconciler(t *testing.T, status landscapev1alpha1.LandscapeStatus) *landscapeReconciler {
	t.Helper()
	clk := clocktesting.NewFakeClock(noon)
	log := slog.New(slog.DiscardHandler)
	notifier := notification.New(notification.Options{Recorder: events.NewFakeRecorder(100), Clock: clk})
	return &landscapeReconciler{operator: &runningOperator{role: &Role{Clock: clk, Log: log}, notifier: notifier, metrics: newMetrics(), requestHandler: &requestHandler{destinations: map[receiver.Key]cachedDestinations{}}}, broadcaster: &progressBroadcaster{}, lifetime: lifetime{ctx: t.Context()},
		object: &landscapev1alpha1.Landscape{}, status: &statusWriter{clock: clk, log: log, desired: status, written: status}}
}

// minimalRevision is a revision that declares nothing.
func minimalRevision(t *testing.T, commit string) *revision {
	t.Helper()
	l, _, err := landscapes.LoadFS(t.Context(), minimalFiles, ".", landscapes.Options{})
	require.NoError(t, err)
	return &revision{Snapshot: &source.Snapshot{Head: source.Head{Name: "main", Commit: commit}}, landscape: l, folder: "."}
}

var minimalFiles = fstest.MapFS{"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec:\n  catalogue: {version: " + components.Version + "}\n")}}

// triedRevisions are attempted revisions in the repository's root.
func triedRevisions(revisions ...string) (out []landscapev1alpha1.TriedRevision) {
	for _, revision := range revisions {
		out = append(out, landscapev1alpha1.TriedRevision{Revision: revision, Path: "."})
	}
	return out
}

// TestStaysAppliedText: the answer to a push that cannot be applied names the revision in force as
// the conditions do.
func TestStaysAppliedText(t *testing.T) {
	const a, b = "main@sha1:a", "main@sha1:b"
	for name, test := range map[string]struct {
		status landscapev1alpha1.LandscapeStatus
		unkept *maintainFailure
		active *job
		want   string
	}{
		"nothing":                         {want: ""},
		"one":                             {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, want: "; " + a + " stays applied"},
		"another one in part":             {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a, Tried: triedRevisions(b)}, want: "; " + b + " stays applied in part, on top of " + a},
		"the first one in part":           {status: landscapev1alpha1.LandscapeStatus{Tried: triedRevisions(b)}, want: "; " + b + " stays applied in part"},
		"it is not kept":                  {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, unkept: &maintainFailure{commit: "a", err: errors.New("it is lost")}, want: "; " + a + " was applied last and is not maintained now: it is lost"},
		"it is kept again":                {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, unkept: &maintainFailure{commit: "a", err: errors.New("it is lost")}, active: &job{}, want: "; " + a + " stays applied"},
		"one that was tried before it is": {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, unkept: &maintainFailure{commit: "z", err: errors.New("it is lost")}, want: "; " + a + " stays applied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestReconciler(t, test.status)
			s.jobs.maintainFailure, s.jobs.activeJob = test.unkept, test.active
			assert.Equal(t, test.want, s.currentRevisionText())
		})
	}
}

// TestReviewIDIsStableAcrossRetries: recording an attempt does not change the review of its commit,
// whatever was attempted before.
func TestReviewIDIsStableAcrossRetries(t *testing.T) {
	tried := func(names ...string) (out []landscapev1alpha1.TriedRevision) {
		for _, name := range names {
			out = append(out, triedRevisions("main@sha1:"+name)...)
		}
		return out
	}
	for name, test := range map[string]struct {
		before, after []landscapev1alpha1.TriedRevision
		id            string
	}{
		"the first":               {tried(), tried("n"), "a..n:."},
		"the sixth":               {tried("t1", "t2", "t3", "t4", "t5"), tried("t1", "t2", "t3", "t4", "t5", "n"), "a,t1,t2,t3,t4,t5..n:."},
		"the seventh":             {tried("t1", "t2", "t3", "t4", "t5", "t6"), tried("t2", "t3", "t4", "t5", "t6", "n"), "a,t2,t3,t4,t5,t6..n:."},
		"one that was tried":      {tried("t1", "n", "t3", "t4", "t5", "t6"), tried("t1", "t3", "t4", "t5", "t6", "n"), "a,t1,t3,t4,t5,t6..n:."},
		"the one that is applied": {tried("t1", "t2", "t3", "t4", "a", "t6"), tried("t2", "t3", "t4", "a", "t6", "n"), "a,t2,t3,t4,t6..n:."},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := newTestReconciler(t, landscapev1alpha1.LandscapeStatus{LastAppliedRevision: "main@sha1:a", LastAppliedPath: ".", Tried: test.before}), commitPath{"n", "."}
			assert.Equal(t, test.id, reviewID(reviewBases(&s.status.desired, n), n))
			s.status.written.Tried = test.after // as if it could be written
			require.True(t, s.recordTried(minimalRevision(t, "n")), fmt.Sprint(s.status.desired.Tried))
			assert.Equal(t, test.after, s.status.desired.Tried)
			assert.Equal(t, test.id, reviewID(reviewBases(&s.status.desired, n), n))
		})
	}
}

// TestUnrecordedAttemptIsRetried: if the status cannot be written after a restart, the applied
// revision is reported as not maintained, and retried. No newer revision is rejected for it.
func TestUnrecordedAttemptIsRetried(t *testing.T) {
	for name, purpose := range map[string]purpose{"a new one": purposeApply, "one that is to be kept": purposeMaintain} {
		t.Run(name, func(t *testing.T) {
			s := newTestReconciler(t, landscapev1alpha1.LandscapeStatus{LastAppliedRevision: "main@sha1:a", LastAppliedPath: ".", Windows: closedWindows})
			r := minimalRevision(t, "a")
			converger, err := landscape.New(r.landscape, landscape.Options{Catalogue: components.FS, Clock: s.operator.role.Clock})
			require.NoError(t, err)
			p := &preparation{commitPath: commitPath{"a", "."}, attempt: attempt{purpose: purpose}, cancel: func() {}}
			s.jobs.preparation, s.sourceAccess.head.Commit = p, "c"
			s.object.Spec.Source = &landscapev1alpha1.Source{}
			s.finishPreparation(p, &job{revision: r, converger: converger}, nil)
			assert.Nil(t, s.jobs.activeJob)
			if !purpose.isForAppliedRevision() {
				assert.Equal(t, "a", s.jobs.lastOutcome.commit)
				return
			}
			require.NotNil(t, s.jobs.maintainFailure)
			assert.ErrorContains(t, s.jobs.maintainFailure.err, "cannot be recorded in the status")
			assert.Empty(t, s.jobs.lastOutcome.commit)
			assert.Equal(t, noon.Add(retryInterval(&s.object.Spec)), s.maintainCurrent(noon), "it is tried again")
		})
	}
}

// TestCacheUsesMaintainedTag: with signed tags, the maintained revision names the tag,
// even if no sync is complete.
func TestCacheUsesMaintainedTag(t *testing.T) {
	_, public := signingKey(t)
	l := &landscapev1alpha1.Landscape{}
	l.Spec.Source = &landscapev1alpha1.Source{URL: "https://git.example.org/a.git", Ref: &landscapev1alpha1.Reference{SemVer: "x"}, Verify: &landscapev1alpha1.Verification{Mode: landscapev1alpha1.VerifyTag}}
	p := &runningOperator{role: &Role{Clock: clocktesting.NewFakeClock(noon), CacheDir: t.TempDir()}}
	keys := map[string][]byte{"ada.pub": []byte(public)}
	remote, err := p.openCache(l, keys, "v1.0.0@sha1:"+strings.Repeat("b", 40))
	require.NoError(t, err)
	require.NoError(t, remote.Close())
	_, err = p.openCache(l, keys, "")
	assert.ErrorContains(t, err, "ref.tag")
}
