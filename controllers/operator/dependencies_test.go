// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestMoveToDependency: an object moves to a Landscape from its dependent. The dependent has to
// release it first, so it does not wait for its dependency.
func TestMoveToDependency(t *testing.T) {
	w := newTestEnv(t)
	ground, top := w.newRepository("ground"), w.newRepository("top")
	top.commit("x", map[string]string{"a.yaml": "", "x.yaml": top.configMap("x", "1"), "own.yaml": top.configMap("own", "1")})
	w.startOperator()
	w.createLandscape(ground.name, ground)
	w.awaitReady(ground.name, "True Applied")
	w.createLandscape(top.name, top, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DependsOn = []landscapev1alpha1.Dependency{{Name: ground.name}}
	})
	w.awaitReady(top.name, "True Applied")
	origin := func() string {
		live := &corev1.ConfigMap{}
		require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "x"}, live))
		return live.Annotations[conventions.ManagedResourceKeys().Origin]
	}
	require.Contains(t, origin(), top.name)
	ground.commit("takes x", map[string]string{"x.yaml": ground.configMap("x", "1")})
	w.awaitLandscape(ground.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False ApplyFailed") && strings.Contains(readyText(l), "landscape "+top.name+" declares this object as well")
	})
	gives := top.commit("gives x", map[string]string{"x.yaml": ""})
	w.awaitLandscape(top.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, gives)
	})
	w.awaitReady(ground.name, "True Applied")
	assert.Contains(t, origin(), ground.name)
}

// TestReadyAfterARestart: a Landscape that was not ready blocks others until the new process has a
// verdict.
func TestReadyAfterARestart(t *testing.T) {
	for former, want := range map[gardencorev1beta1.ConditionStatus]string{gardencorev1beta1.ConditionFalse: "it is not ready (Pending)", gardencorev1beta1.ConditionTrue: ""} {
		t.Run(string(former), func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Status.LastAppliedRevision = "main@sha1:aaaa"
			l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: former, Reason: "ApplyFailed"}}
			s := &landscapeReconciler{operator: &runningOperator{role: &Role{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}, cacheReader: singleLandscapeReader{l}, metrics: newMetrics(), requestHandler: &requestHandler{}},
				object: l, broadcaster: &progressBroadcaster{}, status: &statusWriter{clock: clock.RealClock{}}}
			s.status.setObject(l)
			s.reportStatus("")
			l.Status = s.status.desired
			assert.Equal(t, want, notReadyReason(l))
		})
	}
}

// TestIsWaitingForMovesFrom: isWaitingForMovesFrom is true only if the last failure has no cause
// but moved objects. Earlier failures do not count.
func TestIsWaitingForMovesFrom(t *testing.T) {
	for name, test := range map[string]struct {
		status gardencorev1beta1.ConditionStatus
		reason string
		from   []string
		want   bool
	}{
		"it failed for that":      {gardencorev1beta1.ConditionFalse, reasonApplyFailed, []string{"other", "top"}, true},
		"it failed for another":   {gardencorev1beta1.ConditionFalse, reasonApplyFailed, []string{"topmost"}, false},
		"it failed for all kinds": {gardencorev1beta1.ConditionFalse, reasonApplyFailed, nil, false},
		"it is suspended since":   {gardencorev1beta1.ConditionUnknown, reasonSuspended, []string{"top"}, false},
		"its next one is no good": {gardencorev1beta1.ConditionFalse, reasonInvalid, []string{"top"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Name = "below"
			l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: test.status, Reason: test.reason}}
			other := &landscapeReconciler{}
			other.jobs.moveSources.Store(&test.from)
			p := &runningOperator{reconcilers: map[receiver.Key]*runningReconciler{{Name: "below"}: {reconciler: other}}}
			assert.Equal(t, test.want, p.isWaitingForMovesFrom(l, "top"))
			assert.False(t, (&runningOperator{}).isWaitingForMovesFrom(l, "top"), "nobody has tried it in this process")
		})
	}
}

// TestNoteVerdict: maintaining the applied revision after a restart is not a verdict on the
// source's revision. An attempt or an examination is.
func TestNoteVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		last     string
		examined *waitingValidation
		want     bool
	}{
		"the newest was tried":         {"new", nil, true},
		"the former is kept":           {"old", nil, false},
		"the newest is looked at":      {"old", &waitingValidation{commitPath: commitPath{"new", "."}}, false},
		"it was looked at":             {"old", &waitingValidation{commitPath: commitPath{"new", "."}, isDone: true}, true},
		"it could not be had yet":      {"old", &waitingValidation{commitPath: commitPath{"new", "."}, isDone: true, retryAt: time.Unix(1, 0)}, false},
		"the one before was looked at": {"old", &waitingValidation{commitPath: commitPath{"older", "."}, isDone: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &landscapeReconciler{object: &landscapev1alpha1.Landscape{}, sourceAccess: sourceState{head: source.Head{Commit: "new"}}, jobs: jobs{lastOutcome: syncOutcome{commitPath: commitPath{test.last, "."}}, examination: test.examined}}
			s.recordVerdict()
			assert.Equal(t, test.want, s.jobs.hasVerdict)
			s.sourceAccess.head.Commit = "newer"
			s.recordVerdict()
			assert.Equal(t, test.want, s.jobs.hasVerdict, "once is enough")
		})
	}
}

// TestHeldRepairCanBeApproved: a held repair is in status.held under its reported id while
// it waits.
func TestHeldRepairCanBeApproved(t *testing.T) {
	s := &landscapeReconciler{status: &statusWriter{}}
	byASync := landscapev1alpha1.HeldDeletion{Cluster: "virtual", Object: "ConfigMap a/x", Reason: "by a sync", Approval: "1"}
	s.status.desired.Held = []landscapev1alpha1.HeldDeletion{byASync}
	drift := func(name, held, approval string) {
		s.recordHeldRepair(landscape.Drift{Cluster: "virtual", Object: apply.Ref{Kind: "ConfigMap", Namespace: "a", Name: name}, HoldText: held, Approval: approval})
	}
	drift("x", "again", "1-2")
	drift("y", "why", "2-3")
	drift("y", "why not", "2-4")
	held := landscapev1alpha1.HeldDeletion{Cluster: "virtual", Object: "ConfigMap a/y", Reason: "why not", Approval: "2-4"}
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{byASync, held}, s.status.desired.Held)
	assert.Contains(t, s.heldText(), "the repair of ConfigMap a/y on cluster virtual waits for an approval")
	id, err := resolveApproval(s.status.desired.Held, "2-4", false)
	assert.NoError(t, err)
	assert.Equal(t, "2-4", id)
	drift("y", "", "")
	drift("x", "", "")
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{byASync}, s.status.desired.Held, "what a sync holds only a sync ends")
	assert.Empty(t, s.heldText())
}
