// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestWaitReasonsForFollowers: a push or a request gets one sentence, once, that says why nothing
// is applied.
func TestWaitReasonsForFollowers(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("outcomes")
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator()
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver)
	w.awaitApplied(s, "", "1")
	key := w.namespace + "/" + s.name
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
	require.NoError(t, err)
	never := []landscapev1alpha1.SyncWindow{{Schedule: "0 0 29 2 *", Duration: metav1.Duration{Duration: time.Minute}}}
	for _, test := range []struct {
		name   string
		change func(*landscapev1alpha1.LandscapeSpec)
		phase  string
		push   string // the answer to the push, with REVISION for its revision
	}{
		{"a window", func(spec *landscapev1alpha1.LandscapeSpec) { spec.Windows = never }, receiver.PhaseHeld, "REVISION: waiting for the next window, which opens at "},
		{"a dependency", func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.DependsOn = []landscapev1alpha1.Dependency{{Name: "base"}}
		}, receiver.PhaseHeld, "REVISION: waiting for Landscape base, which does not exist (spec.dependsOn)"},
		{"suspended", func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.Suspend, spec.Suspension = true, &landscapev1alpha1.Suspension{By: "bob", Reason: "the disk is full"}
		}, receiver.PhaseHeld, "nothing is applied, because the Landscape is suspended by bob: the disk is full; to continue: pergola resume " + key},
		{"misconfigured", func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.DependsOn = []landscapev1alpha1.Dependency{{Name: s.name}}
		}, receiver.PhaseFailed, "spec.dependsOn has a cycle: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := w.withTest(t)
			before := w.getLandscape(s.name).Spec
			w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { test.change(&l.Spec) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			commit := s.push(test.name, map[string]string{"a.yaml": s.configMap(s.name, test.name)})
			want := strings.ReplaceAll(test.push, "REVISION", "main@sha1:"+commit)
			var lines []string
			tell := func(p receiver.Progress) { lines = append(lines, p.Phase+" "+p.Message+p.Err) }
			last, _, err := w.receiverClient().RequestSync(ctx, key+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, tell)
			require.NoError(t, err)
			assert.Equal(t, test.phase, last.Phase, lines)
			assert.Contains(t, last.Message+last.Err, want)
			assert.Equal(t, 1, strings.Count(strings.Join(lines, "\n"), want), lines)

			asked, err := handle.Sync(ctx)
			require.NoError(t, err)
			lines = nil
			for p := range handle.Follow(ctx, asked) {
				tell(p)
				last = p
			}
			assert.True(t, last.Done)
			assert.Equal(t, test.phase, last.Phase, lines)
			assert.Contains(t, last.Message+last.Err, want)
			for _, line := range lines[:len(lines)-1] {
				assert.NotContains(t, line, "is applied", "that it is as it was is no progress: %v", lines)
			}
			w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec = before })
			w.awaitApplied(s, commit, test.name)
		})
	}
}

// TestInvalidRevisionIsReportedWhileWaiting: a push of an invalid revision that waits gets the
// error, not only the wait; also for the first revision.
func TestInvalidRevisionIsReportedWhileWaiting(t *testing.T) {
	w := newTestEnv(t)
	first := w.newRepository("first")
	first.commit("broken", map[string]string{"a.yaml": "kind: Broken\n"})
	s := w.newServedRepository("waits")
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator()
	missing := func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DependsOn = []landscapev1alpha1.Dependency{{Name: "base"}}
	}
	w.createLandscape("first", first, missing)
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver)
	w.awaitApplied(s, "", "1")
	w.awaitReady("first", "False Invalid: ")
	key := w.namespace + "/" + s.name
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, change := range map[string]func(*landscapev1alpha1.LandscapeSpec){
		"a dependency": missing,
		"a window": func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "0 0 29 2 *", Duration: metav1.Duration{Duration: time.Minute}}}
		},
	} {
		before := w.getLandscape(s.name).Spec
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { change(&l.Spec) })
		commit := s.push(name, map[string]string{"a.yaml": "kind: Broken" + strings.ReplaceAll(name, " ", "") + "\n"})
		last, _, err := w.receiverClient().RequestSync(ctx, key+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.Equal(t, receiver.PhaseFailed, last.Phase, last)
		assert.Contains(t, last.Err, "revision main@sha1:"+commit)
		assert.Equal(t, "False Invalid", strings.SplitN(readyText(w.awaitReady(s.name, "False Invalid: ")), ":", 2)[0])
		asked, err := handle.Sync(ctx)
		require.NoError(t, err)
		for p := range handle.Follow(ctx, asked) {
			last = p
		}
		assert.Equal(t, receiver.PhaseFailed, last.Phase, last)
		last, _, err = w.receiverClient().RequestSync(ctx, key+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.Equal(t, receiver.PhaseFailed, last.Phase, "also who comes later: %v", last)
		good := s.push("repair it", map[string]string{"a.yaml": s.configMap(s.name, name)})
		last, _, err = w.receiverClient().RequestSync(ctx, key+"/push", receiver.Push{Ref: "refs/heads/main", Commit: good, Pusher: good}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec = before })
		w.awaitApplied(s, good, name)
	}
}

// TestFollowObjectReportsHeld: a follower through the object also learns that the commit is not
// applied now.
func TestFollowObjectReportsHeld(t *testing.T) {
	l := func(reason, message, applied, waiting string) *landscapev1alpha1.Landscape {
		out := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "prod"}}
		out.Status.LastAppliedRevision, out.Status.WaitingRevision = applied, waiting
		out.Status.Conditions = []gardencorev1beta1.Condition{{Type: landscapev1alpha1.LandscapeReady, Status: gardencorev1beta1.ConditionTrue, Reason: reason, Message: message}}
		return out
	}
	for name, test := range map[string]struct {
		object *landscapev1alpha1.Landscape
		want   string
	}{
		"suspended":       {l(reasonSuspended, "suspended by ada", "main@sha1:aaaa", ""), "Held nothing is applied, because the Landscape is suspended by ada; to continue: pergola resume garden/prod"},
		"a window":        {l(reasonWaiting, "main@sha1:aaaa is applied; main@sha1:bbbb: waiting for the next window", "main@sha1:aaaa", "main@sha1:bbbb"), "Held main@sha1:aaaa is applied; main@sha1:bbbb: waiting for the next window"},
		"the first one":   {l(reasonWaiting, "waiting for Landscape base", "", "main@sha1:bbbb"), "Held waiting for Landscape base"},
		"another waits":   {l(reasonWaiting, "main@sha1:aaaa is applied; main@sha1:cccc: waiting for the next window", "main@sha1:aaaa", "main@sha1:cccc"), ""},
		"nothing goes on": {l(reasonApplied, "main@sha1:aaaa is applied", "main@sha1:aaaa", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines := (&objectFollower{commit: "bbbb"}).pollObject(test.object, nil, noon)
			if test.want == "" {
				assert.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			assert.True(t, lines[0].Done)
			assert.Equal(t, test.want, lines[0].Phase+" "+lines[0].Message)
		})
	}
}
