package operator

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// TestMoveAgainstTheOrder: an object moves to a Landscape from one that depends on it. The first can go on only when the second has given the
// object up, which therefore does not wait for it.
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
		return live.Annotations[apply.GardenerKeys().Origin]
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

// TestReadyAfterARestart: others wait for a Landscape that was not ready, also between the start of a process and its first look at it.
func TestReadyAfterARestart(t *testing.T) {
	for former, want := range map[gardencorev1beta1.ConditionStatus]string{gardencorev1beta1.ConditionFalse: "it is not ready (Pending)", gardencorev1beta1.ConditionTrue: ""} {
		t.Run(string(former), func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Status.LastAppliedRevision = "main@sha1:aaaa"
			l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: former, Reason: "ApplyFailed"}}
			s := &syncer{parts: &parts{Role: &Role{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}, reader: only{l}, metrics: newMetrics()},
				object: l, hub: &hub{}, status: &statusWriter{clock: clock.RealClock{}}}
			s.status.of(l)
			s.report("")
			l.Status = s.status.now
			assert.Equal(t, want, notReady(l))
		})
	}
}

// TestWaitsFor: only a sync that failed, and not what one met before, says that a Landscape waits for objects to be given up.
func TestWaitsFor(t *testing.T) {
	const moved = "ConfigMap a/x: OwnedElsewhere: landscape top declares this object as well, in x.yaml, and had it first"
	for name, test := range map[string]struct {
		status  gardencorev1beta1.ConditionStatus
		reason  string
		problem string
		want    bool
	}{
		"it failed for that":      {gardencorev1beta1.ConditionFalse, reasonApplyFailed, moved, true},
		"it failed for another":   {gardencorev1beta1.ConditionFalse, reasonApplyFailed, strings.ReplaceAll(moved, "top", "topmost"), false},
		"it is suspended since":   {gardencorev1beta1.ConditionUnknown, reasonSuspended, moved, false},
		"its next one is no good": {gardencorev1beta1.ConditionFalse, reasonInvalid, moved, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &landscapev1alpha1.Landscape{}
			l.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: test.status, Reason: test.reason}}
			l.Status.LastErrors = []gardencorev1beta1.LastError{{Description: test.problem}}
			assert.Equal(t, test.want, waitsFor(l, "top"))
		})
	}
}
