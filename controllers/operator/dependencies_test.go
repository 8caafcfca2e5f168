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

// TestMoveAgainstTheOrder: an object moves to a Landscape from its dependent. The dependent has to
// release it first, so it does not wait for its dependency.
func TestMoveAgainstTheOrder(t *testing.T) {
	w := newWorld(t)
	ground, top := w.repository("ground"), w.repository("top")
	top.commit("x", map[string]string{"a.yaml": "", "x.yaml": top.configMap("x", "1"), "own.yaml": top.configMap("own", "1")})
	w.start()
	w.landscape(ground.name, ground)
	w.ready(ground.name, "True Applied")
	w.landscape(top.name, top, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DependsOn = []landscapev1alpha1.Dependency{{Name: ground.name}}
	})
	w.ready(top.name, "True Applied")
	origin := func() string {
		live := &corev1.ConfigMap{}
		require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "x"}, live))
		return live.Annotations[conventions.Keys().Origin]
	}
	require.Contains(t, origin(), top.name)
	ground.commit("takes x", map[string]string{"x.yaml": ground.configMap("x", "1")})
	w.await(ground.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readiness(l), "False ApplyFailed") && strings.Contains(readiness(l), "landscape "+top.name+" declares this object as well")
	})
	gives := top.commit("gives x", map[string]string{"x.yaml": ""})
	w.await(top.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, gives)
	})
	w.ready(ground.name, "True Applied")
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
			s := &syncer{parts: &parts{role: &Role{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}, reader: only{l}, metrics: newMetrics(), desk: &desk{}},
				object: l, hub: &hub{}, status: &statusWriter{clock: clock.RealClock{}}}
			s.status.of(l)
			s.report("")
			l.Status = s.status.now
			assert.Equal(t, want, notReady(l))
		})
	}
}

// TestWaitsFor: waitsFor is true only if the last failure has no cause but moved objects. Earlier
// failures do not count.
func TestWaitsFor(t *testing.T) {
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
			other := &syncer{}
			other.jobs.movesFrom.Store(&test.from)
			p := &parts{syncers: map[receiver.Key]*running{{Name: "below"}: {syncer: other}}}
			assert.Equal(t, test.want, p.waitsFor(l, "top"))
			assert.False(t, (&parts{}).waitsFor(l, "top"), "nobody has tried it in this process")
		})
	}
}

// TestSettled: maintaining the applied revision after a restart is not a verdict on the source's
// revision. An attempt or an examination is.
func TestSettled(t *testing.T) {
	for name, test := range map[string]struct {
		last     string
		examined *examination
		want     bool
	}{
		"the newest was tried":         {"new", nil, true},
		"the former is kept":           {"old", nil, false},
		"the newest is looked at":      {"old", &examination{commitAt: commitAt{"new", "."}}, false},
		"it was looked at":             {"old", &examination{commitAt: commitAt{"new", "."}, done: true}, true},
		"it could not be had yet":      {"old", &examination{commitAt: commitAt{"new", "."}, done: true, again: time.Unix(1, 0)}, false},
		"the one before was looked at": {"old", &examination{commitAt: commitAt{"older", "."}, done: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &syncer{object: &landscapev1alpha1.Landscape{}, origin: origin{head: source.Head{Commit: "new"}}, jobs: jobs{last: outcome{commitAt: commitAt{test.last, "."}}, examined: test.examined}}
			s.settles()
			assert.Equal(t, test.want, s.jobs.settled)
			s.origin.head.Commit = "newer"
			s.settles()
			assert.Equal(t, test.want, s.jobs.settled, "once is enough")
		})
	}
}

// TestARepairThatIsHeldCanBeApproved: a held repair is in status.held under its reported id while
// it waits.
func TestARepairThatIsHeldCanBeApproved(t *testing.T) {
	s := &syncer{status: &statusWriter{}}
	byASync := landscapev1alpha1.HeldDeletion{Cluster: "virtual", Object: "ConfigMap a/x", Reason: "by a sync", Approval: "1"}
	s.status.now.Held = []landscapev1alpha1.HeldDeletion{byASync}
	drift := func(name, held, approval string) {
		s.holdsRepair(landscape.Drift{Cluster: "virtual", Object: apply.Ref{Kind: "ConfigMap", Namespace: "a", Name: name}, Held: held, Approval: approval})
	}
	drift("x", "again", "1-2")
	drift("y", "why", "2-3")
	drift("y", "why not", "2-4")
	held := landscapev1alpha1.HeldDeletion{Cluster: "virtual", Object: "ConfigMap a/y", Reason: "why not", Approval: "2-4"}
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{byASync, held}, s.status.now.Held)
	assert.Contains(t, s.heldText(), "the repair of ConfigMap a/y on cluster virtual waits for an approval")
	id, err := approvalOf(s.status.now.Held, "2-4", false)
	assert.NoError(t, err)
	assert.Equal(t, "2-4", id)
	drift("y", "", "")
	drift("x", "", "")
	assert.Equal(t, []landscapev1alpha1.HeldDeletion{byASync}, s.status.now.Held, "what a sync holds only a sync ends")
	assert.Empty(t, s.heldText())
}
