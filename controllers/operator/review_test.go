// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// recreatableConfigMap is a ConfigMap that may be recreated if it is immutable.
func (r *testRepository) recreatableConfigMap(name, value string) string {
	return strings.Replace(r.configMap(name, value), "annotations: {", "annotations: {resources.gardener.cloud/delete-on-invalid-update: \"true\", ", 1)
}

// TestReviewLimitsDeletions: with a required review, only deletions and recreations in the
// difference of the two revisions are allowed. Others are held, whatever the revision says; fewer
// are applied.
func TestReviewLimitsDeletions(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("review")
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	files := map[string]string{"landscape.yaml": s.landscapeFile("  review: Required\n"), "r1.yaml": s.recreatableConfigMap("r1", "1"), "r2.yaml": s.recreatableConfigMap("r2", "1")}
	for i := range 6 {
		files[fmt.Sprintf("d%d.yaml", i)] = s.configMap(fmt.Sprintf("d%d", i), "x")
	}
	first := s.push("more", files)
	w.startOperator()
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Review = landscapev1alpha1.ReviewRequired
	})
	w.awaitApplied(s, first, "1")
	ask := func(commit string) receiver.Progress {
		t.Helper()
		last, followed, err := w.receiverClient().RequestSync(t.Context(), w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: commit}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.True(t, followed)
		return last
	}

	// Equal: two reviewed deletions.
	second := s.push("two deletions", map[string]string{"d0.yaml": "", "d1.yaml": ""})
	last := ask(second)
	assert.Equal(t, receiver.PhaseApplied, last.Phase, last)
	w.awaitApplied(s, second, "1")
	assert.Empty(t, w.configMapValue("d0")+w.configMapValue("d1"))

	// Better: one of two objects no longer exists.
	require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "d2"}}))
	w.eventually("drift is repaired", func() bool { return w.configMapValue("d2") == "x" })
	w.suspend(s.name, true)
	require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "d2"}}))
	// Two commits between two syncs are one difference.
	s.push("one deletion", map[string]string{"d2.yaml": ""})
	third := s.push("another", map[string]string{"d3.yaml": ""})
	_, _, err := w.receiverClient().RequestSync(t.Context(), w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: third, Pusher: "ada"}, nil)
	require.NoError(t, err)
	w.suspend(s.name, false)
	w.awaitApplied(s, third, "1")
	assert.Empty(t, w.configMapValue("d2")+w.configMapValue("d3"))

	// Worse: the difference shows two changes, but one of the objects was made immutable and has to
	// be recreated.
	frozen := &corev1.ConfigMap{}
	frozen.Namespace, frozen.Name = w.namespace, "r1"
	require.NoError(t, w.client.Patch(context.Background(), frozen, client.RawPatch(types.MergePatchType, []byte(`{"immutable": true}`))))
	fourth := s.push("changes", map[string]string{"r1.yaml": s.recreatableConfigMap("r1", "2"), "r2.yaml": s.recreatableConfigMap("r2", "2"), "d4.yaml": ""})
	last = ask(fourth)
	assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 })
	assert.Equal(t, "it is not in the reviewed difference", l.Status.Held[0].Reason)
	assert.Contains(t, last.Message, "1 deletion or recreation waits for an approval: pergola history "+w.namespace+"/"+s.name+
		" lists them with reasons, pergola approve "+w.namespace+"/"+s.name+" "+l.Status.Held[0].Approval+" approves them")
	w.eventually("it is told", func() bool {
		notes := w.eventTexts(s.name, reasonHeld)
		return len(notes) == 1 && strings.Contains(notes[0], "pergola approve")
	})
	assert.Equal(t, "ConfigMap "+w.namespace+"/r1", l.Status.Held[0].Object)
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result)
	assert.True(t, strings.HasPrefix(readyText(l), "True Applied: main@sha1:"+fourth+" is applied; 1 deletion or recreation waits for an approval"), readyText(l))
	assert.Equal(t, []string{"1", "2", ""}, []string{w.configMapValue("r1"), w.configMapValue("r2"), w.configMapValue("d4")}, "the rest is applied")
	// The next commit needs no review, and does not show it either.
	fifth := s.push("no review", map[string]string{"landscape.yaml": s.landscapeFile(""), "d5.yaml": ""})
	last = ask(fifth)
	assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
	assert.Equal(t, []string{"1", ""}, []string{w.configMapValue("r1"), w.configMapValue("d5")})

	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "me")
	require.NoError(t, err)
	require.NoError(t, handle.Approve(context.Background(), []string{l.Status.Held[0].Approval}, false))
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.Held) == 0 && w.configMapValue("r1") == "2"
	})
}

// TestUnapprovedDeletionKeepsItsReason: a review shows two deletions that the gate holds. The
// unapproved one stays held for its original reason.
func TestUnapprovedDeletionKeepsItsReason(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("part")
	r.commit("more", map[string]string{"b.yaml": r.configMap("b", "1"), "c.yaml": r.configMap("c", "1")})
	stop := w.startOperator()
	none := int32(0)
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Review, spec.DeletionGate = landscapev1alpha1.ReviewRequired, &landscapev1alpha1.DeletionGate{MaxDeletions: &none}
	})
	w.awaitReady(r.name, "True Applied: ")
	r.commit("less", map[string]string{"b.yaml": "", "c.yaml": ""})
	l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 2 })
	const reason = "every deletion on cluster runtime needs approval"
	assert.Equal(t, reason, l.Status.Held[1].Reason)
	other := l.Status.Held[1].Object
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: r.name}, clock.RealClock{}, "me")
	require.NoError(t, err)
	require.NoError(t, handle.Approve(context.Background(), []string{l.Status.Held[0].Approval}, false))
	l = w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 })
	assert.Equal(t, other, l.Status.Held[0].Object)
	assert.Equal(t, "it is still held: "+reason, l.Status.Held[0].Reason)
	l = w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.History[0].EndTime != nil })
	assert.Equal(t, l.Spec.Approved[:1], l.Status.History[0].Approvals, l.Status.History[0].Message)
	assert.Contains(t, l.Status.History[0].Message, UsedApprovalsText(l.Spec.Approved[:1]))
	stop()
	w.startOperator()
	r.commit("another", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.eventually("it is applied", func() bool { return w.configMapValue("a") == "2" })
	l = w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.Held) == 1 && l.Status.History[0].EndTime != nil
	})
	assert.Equal(t, "it is still held: "+reason, l.Status.Held[0].Reason, "the same one, and once")
	assert.Empty(t, l.Status.History[0].Approvals, "nothing passed in this one")
}

// TestRevertWithReview: a revert of a partial commit shows the deletion of its objects.
func TestRevertWithReview(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("revert")
	w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired })
	w.awaitReady(r.name, "True Applied: ")
	ended := func(commit string) *landscapev1alpha1.Landscape {
		return w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
			return len(l.Status.History) > 0 && l.Status.History[0].EndTime != nil && strings.HasSuffix(l.Status.History[0].Revision, commit)
		})
	}
	bad := strings.Replace(r.configMap("nowhere", "1"), "namespace: "+r.namespace, "namespace: is-not-there", 1)
	l := ended(r.commit("bad", map[string]string{"b.yaml": r.configMap("b", "1"), "bad.yaml": bad}))
	require.Equal(t, landscapev1alpha1.SyncFailed, l.Status.History[0].Result)
	require.Equal(t, "1", w.configMapValue("b"))
	r.git("revert", "--no-edit", "HEAD")
	l = ended(strings.TrimSpace(r.git("rev-parse", "HEAD")))
	assert.Equal(t, landscapev1alpha1.SyncSucceeded, l.Status.History[0].Result, l.Status.History[0].Message)
	assert.Empty(t, w.configMapValue("b"))
}

// TestMaintainIsNotARevert: maintaining the applied revision after a restart does not revert a
// partial revision. Its objects stay until a commit removes them.
func TestMaintainIsNotARevert(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("kept")
	stop := w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired })
	w.awaitReady(r.name, "True Applied: ")
	bad := strings.Replace(r.configMap("nowhere", "1"), "namespace: "+r.namespace, "namespace: is-not-there", 1)
	failed := r.commit("bad", map[string]string{"b.yaml": r.configMap("b", "1"), "bad.yaml": bad})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.History) > 0 && l.Status.History[0].EndTime != nil && strings.HasSuffix(l.Status.History[0].Revision, failed)
	})
	require.Equal(t, "1", w.configMapValue("b"))
	stop()
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "nonsense", Duration: metav1.Duration{Duration: time.Hour}}}
	})
	w.startOperator()
	l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), failed+" did not complete and cannot continue: spec.windows[0]: schedule")
	})
	assert.Equal(t, "1", w.configMapValue("b"))
	assert.Empty(t, l.Status.Held)
}

// TestUnreadableBaseHoldsDeletions: a revision is applied although the previous one is unreadable.
// All its deletions are held, and the reason is reported.
func TestUnreadableBaseHoldsDeletions(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("moved")
	stop := w.startOperator()
	w.createLandscape(r.name, r, requireReview)
	w.awaitReady(r.name, "True Applied: ")
	first := r.commit("b", map[string]string{"b.yaml": r.configMap("b", "1")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, first)
	})
	stop()
	another := w.newRepository(r.name) // it never had that commit
	commit := another.commit("moved", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.URL = "file://" + another.dir })
	w.startOperator()
	l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
	})
	assert.Equal(t, []string{"2", "1"}, []string{w.configMapValue("a"), w.configMapValue("b")})
	assert.Contains(t, readyText(l), "cannot be compared with it, so deletions that no other comparison shows are held")
	require.Len(t, l.Status.Held, 1)
	assert.Equal(t, "ConfigMap "+w.namespace+"/b", l.Status.Held[0].Object)
}

// TestFolderChangeIsReviewed: a move to another folder is compared with the previous one, so that
// its deletions are reviewed.
func TestFolderChangeIsReviewed(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("moved")
	r.commit("b", map[string]string{"b.yaml": r.configMap("b", "1")})
	stop := w.startOperator()
	w.createLandscape(r.name, r, requireReview)
	w.awaitReady(r.name, "True Applied: ")
	stop()
	commit := r.commit("moved", map[string]string{"landscape.yaml": "", "a.yaml": "", "b.yaml": "", "prod/landscape.yaml": r.landscapeFile(""), "prod/a.yaml": r.configMap("a", "2")})
	w.setFolder(r.name, "prod")
	w.startOperator()
	l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
	})
	assert.Equal(t, []string{"2", ""}, []string{w.configMapValue("a"), w.configMapValue("b")})
	assert.Empty(t, l.Status.Held)
}

// TestOutdatedReview: a preparation is repeated if another revision was applied or
// attempted since its review. Retries of a revision share one review.
func TestOutdatedReview(t *testing.T) {
	status := func(applied string, tried ...string) *landscapev1alpha1.LandscapeStatus {
		return &landscapev1alpha1.LandscapeStatus{LastAppliedRevision: applied, LastAppliedPath: ".", Tried: triedRevisions(tried...)}
	}
	assert.Equal(t, []commitPath{{}}, reviewBases(status(""), commitPath{"d", "."}))
	assert.Equal(t, []commitPath{{"a", "."}, {"b", "."}, {"c", "."}}, reviewBases(status("main@sha1:a", "main@sha1:b", "main@sha1:a", "main@sha1:c", "main@sha1:d"), commitPath{"d", "."}))
	assert.Equal(t, "..d:.", reviewID(reviewBases(status(""), commitPath{"d", "."}), commitPath{"d", "."}))
	assert.Equal(t, "a:.,d:...d:new", reviewID(reviewBases(status("main@sha1:a", "main@sha1:d"), commitPath{"d", "new"}), commitPath{"d", "new"}), "the same commit in another folder")
	j := &job{permissions: jobPermissions{review: &permit.Review{ID: "a,b..d:."}}, revision: &revision{folder: ".", Snapshot: &source.Snapshot{Head: source.Head{Commit: "d"}}}}
	assert.False(t, j.isOutdated(status("main@sha1:a", "main@sha1:b")))
	assert.False(t, j.isOutdated(status("main@sha1:a", "main@sha1:b", "main@sha1:d")))
	assert.True(t, j.isOutdated(status("main@sha1:b")))
	assert.True(t, j.isOutdated(status("main@sha1:a", "main@sha1:b", "main@sha1:c")))
	j.permissions.review = nil
	assert.False(t, j.isOutdated(status("main@sha1:b")), "no review is asked for")
}

// recordingRemote is a source that records the requested commits.
type recordingRemote struct {
	source.Remote
	requestedCommits []string
}

func (r *recordingRemote) At(_ context.Context, commit string) (*source.Snapshot, error) {
	r.requestedCommits = append(r.requestedCommits, commit)
	return &source.Snapshot{Head: source.Head{Commit: commit}, FS: minimalFiles}, nil
}

// TestReviewBaseIsReadOnce: the update validation and the review share the applied revision,
// which is not the maintained one after a failed sync.
func TestReviewBaseIsReadOnce(t *testing.T) {
	object := &landscapev1alpha1.Landscape{}
	object.Status = landscapev1alpha1.LandscapeStatus{LastAppliedRevision: "main@sha1:a", LastAppliedPath: ".", Tried: triedRevisions("main@sha1:b", "main@sha1:c")}
	remote := &recordingRemote{}
	r := &revisionReader{catalogue: components.FS, now: noon, object: object, remote: remote, activeRevision: minimalRevision(t, "c"), loadedBases: map[commitPath]*landscapes.Landscape{}}
	next := minimalRevision(t, "d")
	former, note, err := r.readApplied(t.Context(), next)
	require.NoError(t, err)
	assert.NotNil(t, former)
	assert.Empty(t, note)
	seen, err := r.reviewChanges(t.Context(), next)
	require.NoError(t, err)
	assert.Equal(t, "a,b,c..d:.", seen.ID)
	assert.Equal(t, []string{"a", "b"}, remote.requestedCommits)
}
