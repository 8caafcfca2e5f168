// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestFollowWithoutCommit: a request without a commit gets the result of the last sync after its
// poll, even without a new revision.
func TestFollowWithoutCommit(t *testing.T) {
	w := newTestEnv(t)
	w.startOperator()
	s := w.newServedRepository("anything")
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver)
	w.awaitApplied(s, "", "1")
	ask := func() receiver.Progress {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		last, followed, err := w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Pusher: fmt.Sprint(time.Now().UnixNano())}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.True(t, followed)
		assert.True(t, last.Done)
		return last
	}
	last := ask()
	assert.Equal(t, receiver.PhaseApplied, last.Phase)
	assert.Contains(t, last.Message, "the source has nothing new; main@sha1:")

	next := s.pushValue("2")
	last = ask()
	assert.Equal(t, receiver.PhaseApplied, last.Phase, last.Err)
	w.awaitApplied(s, next, "2")

	s.push("broken", map[string]string{"a.yaml": "kind: [\n"})
	for range 2 { // first from the sync itself, then without a new revision
		last = ask()
		assert.Equal(t, receiver.PhaseFailed, last.Phase)
		assert.Contains(t, last.Err, "is not valid")
	}
	s.pushValue("3")
	require.NoError(t, os.Rename(s.server.Bare, s.server.Bare+".away"))
	last = ask()
	assert.Equal(t, receiver.PhaseFailed, last.Phase)
	assert.Contains(t, last.Err, "no such repository")
	assert.Contains(t, last.Err, next+" stays applied")
	require.NoError(t, os.Rename(s.server.Bare+".away", s.server.Bare))
	assert.Equal(t, receiver.PhaseApplied, ask().Phase)

	// Neither does a missing Secret make it wait.
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Source.SecretRef = &landscapev1alpha1.LocalSecretReference{Name: "missing"}
	})
	w.awaitReady(s.name, "False SourceNotReady")
	w.eventually("it is said", func() bool { // the sync after the change may end first
		last = ask()
		return last.Phase == receiver.PhaseFailed
	})
	assert.Contains(t, last.Err, " does not exist")
}

// TestFollowOnOtherReplica: a replica without the lease reports the same from the object's status.
func TestFollowOnOtherReplica(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(minute) * time.Minute)}
	}
	former := landscapev1alpha1.SyncRecord{Revision: "main@sha1:aaaa", Result: landscapev1alpha1.SyncFailed, Message: "long ago", StartTime: *at(0), EndTime: at(1)}
	before := &landscapev1alpha1.Landscape{}
	before.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "an earlier one"}
	before.Status.LastHandledSyncRequest = "an earlier one"
	before.Status.History = []landscapev1alpha1.SyncRecord{former}
	before.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: gardencorev1beta1.ConditionTrue, Message: "main@sha1:aaaa is applied"}}
	asked := before.DeepCopy()
	asked.Annotations[landscapev1alpha1.AnnotationSyncRequested] = "ours"
	handled := asked.DeepCopy()
	handled.Status.LastHandledSyncRequest = "ours"
	synced := handled.DeepCopy()
	synced.Status.History = append([]landscapev1alpha1.SyncRecord{{Revision: "main@sha1:bbbb", Result: landscapev1alpha1.SyncSucceeded, Message: "3 objects", StartTime: *at(2), EndTime: at(3)}}, former)
	// The running sync ends first; the requested one begins after that.
	busy := synced.DeepCopy()
	busy.Status.Conditions = append(busy.Status.Conditions, gardencorev1beta1.Condition{Type: landscapev1alpha1.LandscapeReconciling, Status: gardencorev1beta1.ConditionTrue, Reason: reasonApplying, Message: "applying"})
	again := synced.DeepCopy()
	again.Status.History = append([]landscapev1alpha1.SyncRecord{{Revision: "main@sha1:bbbb", Result: landscapev1alpha1.SyncSucceeded, Message: "1 object", StartTime: *at(3), EndTime: at(4)}}, synced.Status.History...)
	waits := synced.DeepCopy()
	waits.Status.Conditions[0].Reason, waits.Status.Conditions[0].Message = reasonWaiting, "main@sha1:bbbb is applied; main@sha1:cccc: waiting for the next window"
	waitsStill := handled.DeepCopy()
	waitsStill.Status.Conditions = waits.Status.Conditions
	for name, test := range map[string]struct {
		seen []*landscapev1alpha1.Landscape
		want string
	}{
		"another one ended":       {[]*landscapev1alpha1.Landscape{before, asked, busy, busy, again}, "Applied: 1 object"},
		"a window":                {[]*landscapev1alpha1.Landscape{before, asked, waitsStill, waitsStill}, "Held: main@sha1:bbbb is applied; main@sha1:cccc: waiting for the next window"},
		"a window, with a repair": {[]*landscapev1alpha1.Landscape{before, asked, waits}, "Held: main@sha1:bbbb is applied; main@sha1:cccc: waiting for the next window"},
		"nothing new":             {[]*landscapev1alpha1.Landscape{before, asked, handled, handled}, "Applied: main@sha1:aaaa is applied"},
		"a new one":               {[]*landscapev1alpha1.Landscape{before, asked, synced}, "Applied: 3 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			f := followNext(t.Context(), fastClock{}, func(context.Context) (*landscapev1alpha1.Landscape, error) {
				looks++
				return test.seen[min(looks, len(test.seen))-1], nil
			}, before)
			var last receiver.Progress
			for last = range f {
			}
			assert.True(t, last.Done)
			assert.Equal(t, test.want, last.Phase+": "+strings.TrimSpace(last.Message))
			assert.GreaterOrEqual(t, looks, len(test.seen))
		})
	}
}

// fastClock is the real clock with short ticks.
type fastClock struct{ clock.RealClock }

func (fastClock) NewTicker(time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(time.Millisecond)
}

// TestRequestedSyncReportsErrors: a request for a sync reports an unreadable source or a repeated
// failure at once, and success afterwards.
func TestRequestedSyncReportsErrors(t *testing.T) {
	w := newTestEnv(t)
	w.startOperator()
	s := w.newServedRepository("told")
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval, spec.RetryInterval = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Hour}
	})
	w.awaitApplied(s, "", "1")
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "me")
	require.NoError(t, err)
	ask := func() receiver.Progress {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		asked, err := handle.Sync(ctx)
		require.NoError(t, err)
		var last receiver.Progress
		for last = range handle.Follow(ctx, asked) {
		}
		assert.True(t, last.Done, "%+v", last)
		return last
	}
	last := ask()
	assert.Equal(t, receiver.PhaseApplied, last.Phase)
	require.NoError(t, os.Rename(s.server.Bare, s.server.Bare+".away"))
	for range 2 {
		last = ask()
		assert.Equal(t, receiver.PhaseFailed, last.Phase)
		assert.Contains(t, last.Err, "no such repository")
		assert.Contains(t, last.Err, "stays applied")
	}
	retrying := condition.Get(w.getLandscape(s.name).Status.Conditions, landscapev1alpha1.LandscapeReconciling)
	require.NotNil(t, retrying)
	assert.Equal(t, reasonRetrying, retrying.Reason)
	// The repair of a sync does not hide that the source has another revision.
	require.NoError(t, os.Rename(s.server.Bare+".away", s.server.Bare))
	next := s.pushValue("2")
	assert.Equal(t, receiver.PhaseApplied, ask().Phase)
	w.awaitApplied(s, next, "2")

	// A sync that fails as before has no separate record.
	s.push("nowhere", map[string]string{"b.yaml": strings.Replace(s.configMap("b", "1"), "namespace: "+s.namespace, "namespace: nowhere-"+s.namespace, 1)})
	for range 2 {
		last = ask()
		assert.Equal(t, receiver.PhaseFailed, last.Phase, last.Message)
		assert.Contains(t, last.Err, "nowhere-"+s.namespace)
	}
	s.push("mended", map[string]string{"b.yaml": ""})
	assert.Equal(t, receiver.PhaseApplied, ask().Phase)
}
