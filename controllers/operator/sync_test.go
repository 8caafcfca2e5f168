// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestSync: two commits are applied, drift is repaired, and the status says so.
func TestSync(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("one")
	w.startOperator()
	w.createLandscape("one", r)
	l := w.awaitReady("one", "True Applied: main@sha1:")
	assert.Equal(t, "1", w.configMapValue("a"))
	require.Len(t, l.Status.History, 1)
	record := l.Status.History[0]
	assert.Equal(t, landscapev1alpha1.SyncSucceeded, record.Result)
	assert.Equal(t, []string{"begin", "An Author <a@example.com>", triggerCommit}, []string{record.Subject, record.Author, record.Trigger})
	assert.Contains(t, l.Status.Inventory, landscapev1alpha1.InventorySummary{Cluster: "runtime", Objects: 1})
	assert.Nil(t, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling))

	next := r.commit("second", map[string]string{"a.yaml": r.configMap("a", "2")})
	l = w.awaitReady("one", "True Applied: main@sha1:"+next)
	assert.Equal(t, "2", w.configMapValue("a"))
	assert.Equal(t, "main@sha1:"+next, l.Status.LastAppliedRevision)
	require.Len(t, l.Status.History, 2)
	assert.EqualValues(t, 1, l.Status.History[0].Changed)

	require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}))
	require.Eventually(t, func() bool { return w.configMapValue("a") == "2" }, 20*time.Second, 20*time.Millisecond)
}

// TestLastValidRevisionStaysApplied: the last valid revision stays applied with a warning, also
// after a restart, and a repaired one is applied at once.
func TestLastValidRevisionStaysApplied(t *testing.T) {
	w := newTestEnv(t)
	file := "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: %s}\n"
	all := []*struct {
		name, file, text string
		*testRepository
		good, bad string
	}{
		{name: "not-valid", file: "landscape.yaml", text: file + "spec: {colour: red}\n"},
		{name: "not-readable", file: "a.yaml", text: "a: b: c\n"},
		{name: "folder-is-gone", file: "landscape.yaml"},
		{name: "another-name", file: "landscape.yaml", text: fmt.Sprintf(file, "other")},
		{name: "another-catalogue", file: "landscape.yaml", text: file + "spec: {catalogue: {version: 99.0.0}}\n"},
		{name: "demands-signatures", file: "landscape.yaml", text: file + "spec: {source: {url: 'https://a.example', verify: {secretRef: {name: keys}}}}\n"},
	}
	stop := w.startOperator()
	for _, o := range all {
		o.testRepository = w.newRepository(o.name)
		o.good = o.commit("its own", map[string]string{"a.yaml": o.configMap(o.name, "1")})
		w.createLandscape(o.name, o.testRepository)
	}
	for _, o := range all {
		w.awaitReady(o.name, "True Applied: main@sha1:"+o.good)
		o.bad = o.commit("break it", map[string]string{o.file: strings.ReplaceAll(o.text, "%s", o.name)})
	}
	for _, o := range all {
		l := w.awaitReady(o.name, "False Invalid: revision main@sha1:"+o.bad)
		assert.Contains(t, readyText(l), "main@sha1:"+o.good+" stays applied")
		assert.NotNil(t, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled))
		assert.Equal(t, "main@sha1:"+o.good, l.Status.LastAppliedRevision)
		assert.Equal(t, landscapev1alpha1.SyncFailed, l.Status.History[0].Result)
	}
	stop()
	w.startOperator()
	for _, o := range all {
		w.awaitReady(o.name, "False Invalid: revision main@sha1:"+o.bad)
		require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: o.name}}))
	}
	for _, o := range all {
		w.eventually("drift is repaired although the newest revision is not valid", func() bool { return w.configMapValue(o.name) == "1" })
		assert.Equal(t, "main@sha1:"+o.good, w.getLandscape(o.name).Status.LastAppliedRevision)
		o.git("revert", "--no-edit", "-n", "HEAD")
		o.commit("repair it", map[string]string{"a.yaml": o.configMap(o.name, "3")})
	}
	for _, o := range all {
		w.awaitReady(o.name, "True Applied")
		assert.Equal(t, "3", w.configMapValue(o.name))
	}
}

// TestCommitCannotLoosenDeletionGate: a commit cannot remove the gate that holds its own deletions.
func TestCommitCannotLoosenDeletionGate(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("loose")
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("b%d.yaml", i)] = r.configMap(fmt.Sprintf("b%d", i), "x")
	}
	r.commit("more", files)
	w.startOperator()
	w.createLandscape("loose", r, func(s *landscapev1alpha1.LandscapeSpec) {
		most := int32(5)
		s.DeletionGate = &landscapev1alpha1.DeletionGate{MaxDeletions: &most}
	})
	w.awaitReady("loose", "True Applied")
	for name := range files {
		files[name] = ""
	}
	files["landscape.yaml"] = r.landscapeFile("  deletionGate: {maxDeletions: 1000, protectedKinds: []}\n")
	r.commit("less", files)
	l := w.awaitLandscape("loose", func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 12 })
	assert.Contains(t, readyText(l), "asks for less protection")
	assert.Contains(t, readyText(l), "deletionGate.maxDeletions 1000 (it stays at 5)")
	assert.Equal(t, "x", w.configMapValue("b3"))
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result)

	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: "loose"}, clock.RealClock{}, "me")
	require.NoError(t, err)
	require.ErrorContains(t, handle.Approve(context.Background(), []string{"nonsense"}, false), "no held deletion has the id")
	// Differences and dry runs show ids of single objects. They work as the common id does.
	ids := map[string]bool{}
	for _, h := range l.Status.Held {
		assert.Equal(t, l.Status.Held[0].Together, h.Together)
		ids[h.Approval] = true
	}
	require.Len(t, ids, 12)
	require.NoError(t, handle.Approve(context.Background(), slices.Collect(maps.Keys(ids)), false))
	l = w.awaitLandscape("loose", func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.Held) == 0 && w.configMapValue("b3") == ""
	})
	assert.Len(t, l.Status.UsedApprovals, len(ids))

	// The same deletions later need new approvals.
	for name := range files {
		if name != "landscape.yaml" {
			files[name] = r.configMap(strings.TrimSuffix(name, ".yaml"), "y")
		}
	}
	r.commit("more again", files)
	w.awaitLandscape("loose", func(*landscapev1alpha1.Landscape) bool { return w.configMapValue("b3") == "y" })
	for name := range files {
		if name != "landscape.yaml" {
			files[name] = ""
		}
	}
	r.commit("less again", files)
	l = w.awaitLandscape("loose", func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 12 })
	assert.Equal(t, "y", w.configMapValue("b3"))
	for _, h := range l.Status.Held {
		assert.False(t, ids[h.Approval], "%s was used", h.Approval)
		assert.True(t, strings.HasSuffix(h.Approval, "-2"), h.Approval)
	}
	require.NoError(t, handle.Approve(context.Background(), []string{l.Status.Held[0].Together}, false))
	w.awaitLandscape("loose", func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.Held) == 0 && w.configMapValue("b3") == ""
	})
}

// TestUserActions: suspend, resume, rollback, windows, dependencies and requests.
func TestUserActions(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("people")
	first := strings.TrimSpace(r.git("rev-parse", "HEAD"))
	w.startOperator()
	w.createLandscape("people", r)
	w.awaitReady("people", "True Applied")
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: "people"}, clock.RealClock{}, "me")
	require.NoError(t, err)

	require.NoError(t, handle.Suspend(w.Context(), "I repair etcd", time.Time{}))
	w.awaitReady("people", "Unknown Suspended: suspended by me: I repair etcd")
	second := r.commit("second", map[string]string{"a.yaml": r.configMap("a", "2")})
	asked, err := handle.Sync(w.Context())
	require.NoError(t, err)
	var last receiver.Progress
	limited, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	for p := range handle.Follow(limited, asked) {
		last = p
	}
	assert.True(t, last.Done)
	assert.Contains(t, last.Message, "I repair etcd")
	assert.Equal(t, "1", w.configMapValue("a"))
	was, err := handle.Resume(w.Context())
	require.NoError(t, err)
	assert.True(t, was)
	w.awaitReady("people", "True Applied: main@sha1:"+second)

	commit, err := handle.Pin(w.Context(), PreviousRevision, "it crashes")
	require.NoError(t, err)
	assert.Equal(t, first, commit)
	w.awaitReady("people", "True Applied: PINNED to "+first+" by me (it crashes), main@sha1:"+second+" is not applied")
	assert.Equal(t, "1", w.configMapValue("a"))
	l := w.getLandscape("people")
	assert.Nil(t, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling), "nothing more is to be done while it is pinned")
	asked, err = handle.Sync(w.Context())
	require.NoError(t, err)
	limited, cancel = context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for p := range handle.Follow(limited, asked) {
		last = p
	}
	assert.True(t, last.Done)
	assert.Contains(t, last.Message, "PINNED to "+first)
	_, err = handle.Unpin(w.Context())
	require.NoError(t, err)
	w.awaitReady("people", "True Applied: main@sha1:"+second)
	assert.Equal(t, "2", w.configMapValue("a"))
	_, err = handle.Pin(w.Context(), "ffff", "")
	require.ErrorContains(t, err, `no revision of the history starts with "ffff"`)

	w.changeLandscape("people", func(l *landscapev1alpha1.Landscape) {
		l.Spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "0 0 29 2 *", Duration: metav1.Duration{Duration: time.Minute}}}
	})
	third := r.commit("third", map[string]string{"a.yaml": r.configMap("a", "3")})
	l = w.awaitReady("people", "True Waiting: main@sha1:"+second+" is applied; main@sha1:"+third+": waiting for the next window")
	assert.NotNil(t, l.Status.NextSync)
	asked, err = handle.Sync(w.Context())
	require.NoError(t, err)
	limited, cancel = context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for p := range handle.Follow(limited, asked) {
		last = p
	}
	assert.True(t, last.Done)
	assert.Equal(t, receiver.PhaseHeld, last.Phase)
	assert.Contains(t, last.Message, third+": waiting for the next window, which opens at ")
	assert.Equal(t, "2", w.configMapValue("a"))
	r.commit("wrong", map[string]string{"a.yaml": "a: b: c\n"})
	l = w.awaitReady("people", "False Invalid: ")
	assert.Contains(t, readyText(l), "main@sha1:"+second+" stays applied", "what waits is validated at once")
	r.commit("right", map[string]string{"a.yaml": r.configMap("a", "4")})
	w.awaitReady("people", "True Waiting: main@sha1:"+second+" is applied; ")
	assert.Equal(t, "2", w.configMapValue("a"))

	w.createLandscape("dependent", w.newRepository("dependent"), func(s *landscapev1alpha1.LandscapeSpec) {
		s.DependsOn = []landscapev1alpha1.Dependency{{Name: "absent"}}
	})
	w.awaitReady("dependent", "Unknown Waiting: waiting for Landscape absent, which does not exist")
	w.changeLandscape("dependent", func(l *landscapev1alpha1.Landscape) { l.Spec.DependsOn[0].Name = "dependent" })
	w.awaitReady("dependent", "False Stalled: spec.dependsOn has a cycle: dependent → dependent")
}

// TestRestartCompletesSync: after a stop within a sync the next start completes it and reports
// that.
func TestRestartCompletesSync(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("restart")
	stop := w.startOperator()
	w.createLandscape("restart", r, func(s *landscapev1alpha1.LandscapeSpec) {
		s.Source.Ref = &landscapev1alpha1.Reference{Branch: "main"}
	})
	w.awaitReady("restart", "True Applied")
	stop()
	// A crash leaves an open record.
	l := w.getLandscape("restart")
	before := l.DeepCopy()
	l.Status.History = prependRecord(l.Status.History, landscapev1alpha1.SyncRecord{Revision: "main@sha1:" + strings.Repeat("0", 40), Trigger: triggerCommit, StartTime: metav1.Now()})
	require.NoError(t, w.client.Status().Patch(context.Background(), l, client.MergeFrom(before)))
	next := r.commit("second", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.startOperator()
	l = w.awaitReady("restart", "True Applied: main@sha1:"+next)
	require.GreaterOrEqual(t, len(l.Status.History), 2)
	assert.Equal(t, landscapev1alpha1.SyncInterrupted, l.Status.History[1].Result)
	assert.Equal(t, "2", w.configMapValue("a"))
}

// TestUnreadableSourceKeepsRevision: the applied revision stays while the source cannot be read.
func TestUnreadableSourceKeepsRevision(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("trouble")
	w.startOperator()
	w.createLandscape("trouble", r)
	w.awaitReady("trouble", "True Applied")
	r.git("branch", "-m", "main", "other")
	w.awaitReady("trouble", "False ReferenceNotFound")
	assert.Equal(t, "1", w.configMapValue("a"))
	r.git("branch", "-m", "other", "main")
	w.awaitReady("trouble", "True Applied")
	// A force-push is followed.
	r.git("commit", "-q", "--amend", "-m", "rewritten")
	rewritten := r.commit("after it", map[string]string{"a.yaml": r.configMap("a", "5")})
	w.awaitReady("trouble", "True Applied: main@sha1:"+rewritten)
	assert.Equal(t, "5", w.configMapValue("a"))
}
