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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// twoFolders has two landscapes of one name in one repository, each with an immutable object.
func (r *testRepository) twoFolders(old, new string) map[string]string {
	return map[string]string{
		"old/landscape.yaml": r.landscapeFile(""), "old/v.yaml": r.immutableConfigMap("v", old),
		"new/landscape.yaml": r.landscapeFile(""), "new/v.yaml": r.immutableConfigMap("v", new), "new/w.yaml": r.configMap("w", "new"),
	}
}

func withFolder(path string) func(*landscapev1alpha1.LandscapeSpec) {
	return func(spec *landscapev1alpha1.LandscapeSpec) { spec.Source.Path = path }
}

// setFolder changes the folder in the spec.
func (w *testEnv) setFolder(name, path string) {
	w.Helper()
	w.changeLandscape(name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Path = path })
}

// deleteConfigMap deletes a ConfigMap that the operator then repairs.
func (w *testEnv) deleteConfigMap(name string) {
	w.Helper()
	require.NoError(w, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}))
}

// TestRejectedFolderChange: every process rejects the immutable change in another folder, of the
// same or another commit. The applied revision is maintained from its folder.
func TestRejectedFolderChange(t *testing.T) {
	for name, newer := range map[string]bool{"of the same commit": false, "of another one": true} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			r := w.newRepository("folders")
			commit := r.commit("both", r.twoFolders("1", "2"))
			stop := w.startOperator()
			w.createLandscape(r.name, r, withFolder("old"))
			l := w.awaitReady(r.name, "True Applied: ")
			assert.Equal(t, "old", l.Status.LastAppliedPath)
			if newer {
				commit = r.commit("something else", map[string]string{"README.md": "nothing"})
				w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
					return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
				})
			}
			stop()
			w.setFolder(r.name, "new")
			if newer {
				commit = r.commit("in the new one", map[string]string{"new/w.yaml": r.configMap("w", "newer")})
			}
			w.deleteConfigMap("v")
			refused := func() {
				t.Helper()
				l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
					return strings.HasPrefix(readyText(l), "False Invalid: ") && strings.Contains(readyText(l), commit)
				})
				assert.Contains(t, readyText(l), "must not change: the object is immutable")
				w.eventually("what is applied is kept", func() bool { return w.configMapValue("v") == "1" })
				assert.Empty(t, w.configMapValue("w"))
				assert.Equal(t, "old", w.getLandscape(r.name).Status.LastAppliedPath)
			}
			stop = w.startOperator()
			refused()
			w.deleteConfigMap("v") // between syncs, too
			refused()
			stop()
			w.deleteConfigMap("v")
			w.startOperator()
			refused()

			r.commit("it does not change any more", map[string]string{"new/v.yaml": r.immutableConfigMap("v", "1")})
			l = w.awaitReady(r.name, "True Applied: ")
			assert.Equal(t, "new", l.Status.LastAppliedPath)
			assert.NotEmpty(t, w.configMapValue("w"))
		})
	}
}

// TestFolderChangeWaitsForWindow: another folder waits for a window as another commit does, also of
// the same commit and after a restart. Its errors are reported at once.
func TestFolderChangeWaitsForWindow(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("folders-wait")
	commit := r.commit("both", r.twoFolders("1", "2"))
	stop := w.startOperator()
	w.createLandscape(r.name, r, withFolder("old"))
	w.awaitReady(r.name, "True Applied: ")
	stop()
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: hourlySchedule(8), Duration: metav1.Duration{Duration: time.Hour}}}
	})
	w.setFolder(r.name, "new")
	w.deleteConfigMap("v")
	w.startOperator()
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False Invalid: ") && strings.Contains(readyText(l), "must not change: the object is immutable")
	})
	w.eventually("what is applied is kept", func() bool { return w.configMapValue("v") == "1" })
	right := r.commit("it does not change any more", map[string]string{"new/v.yaml": r.immutableConfigMap("v", "1")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), " Waiting: ") && strings.Contains(readyText(l), right)
	})
	assert.Empty(t, w.configMapValue("w"))
	l := w.getLandscape(r.name)
	assert.True(t, strings.HasSuffix(l.Status.LastAppliedRevision, commit))
	assert.Equal(t, "old", l.Status.LastAppliedPath)
	assert.Contains(t, readyText(l), commit+" (folder old) is applied")
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Windows = nil })
	l = w.awaitReady(r.name, "True Applied: ")
	assert.Equal(t, "new", l.Status.LastAppliedPath)
	assert.Equal(t, "new", w.configMapValue("w"))
}

// TestPartialFolderIsContinued: a partial revision is continued from its folder while the next one
// is rejected, also after a restart.
func TestPartialFolderIsContinued(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("folders-halfway")
	commit := r.commit("both", r.twoFolders("1", "1"))
	stop := w.startOperator()
	w.createLandscape(r.name, r, withFolder("old"))
	w.awaitReady(r.name, "True Applied: ")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "w"}, Data: map[string]string{"value": "theirs"}}
	require.NoError(t, w.client.Create(context.Background(), theirs, client.FieldOwner("mytool")))
	w.setFolder(r.name, "new")
	l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), "mytool") })
	assert.Equal(t, []landscapev1alpha1.TriedRevision{{Revision: "main@sha1:" + commit, Path: "new"}}, l.Status.Tried)
	stop()
	w.setFolder(r.name, "nowhere")
	w.deleteConfigMap("v")
	w.deleteConfigMap("w")
	w.startOperator()
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), "the folder nowhere (spec.source.path) has no file landscape.yaml")
	})
	w.eventually("it is gone on with", func() bool {
		l := w.getLandscape(r.name)
		return w.configMapValue("v") == "1" && w.configMapValue("w") == "new" && l.Status.LastAppliedPath == "new" && len(l.Status.Tried) == 0
	})
}

// TestFolderChangeWithoutSource: without the source the old folder is applied at its
// interval, although the cache has the new one.
func TestFolderChangeWithoutSource(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("folders-gone")
	r.commit("both", r.twoFolders("1", "1"))
	stop := w.startOperator()
	w.createLandscape(r.name, r, withFolder("old"))
	w.awaitReady(r.name, "True Applied: ")
	stop()
	w.setFolder(r.name, "new")
	w.deleteConfigMap("v")
	require.NoError(t, os.Rename(r.dir, r.dir+".away"))
	w.startOperator()
	w.eventually("it is kept", func() bool { return w.configMapValue("v") == "1" })
	before := w.countSyncs()
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
	})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.LastHandledSyncRequest == "now" })
	w.deleteConfigMap("v")
	w.eventually("it is kept", func() bool { return w.configMapValue("v") == "1" })
	assert.LessOrEqual(t, w.countSyncs()-before, 2)
	assert.Empty(t, w.configMapValue("w"))
	require.NoError(t, os.Rename(r.dir+".away", r.dir))
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.LastAppliedPath == "new" })
	assert.Equal(t, "new", w.configMapValue("w"))
}

// TestFolderChangeBlocksDependents: dependents wait for another folder as for another commit.
func TestFolderChangeBlocksDependents(t *testing.T) {
	w := newTestEnv(t)
	base, top := w.newRepository("folders-base"), w.newRepository("folders-top")
	files := base.twoFolders("1", "1")
	for i := range 300 {
		files[fmt.Sprintf("new/m%d.yaml", i)] = base.configMap(fmt.Sprintf("m%d", i), "x")
	}
	base.commit("both", files)
	w.startOperator()
	w.createLandscape(base.name, base, withFolder("old"))
	w.awaitReady(base.name, "True Applied: ")
	w.createLandscape(top.name, top, func(s *landscapev1alpha1.LandscapeSpec) {
		s.DependsOn = []landscapev1alpha1.Dependency{{Name: base.name}}
	})
	w.awaitReady(top.name, "True Applied: ")
	w.setFolder(base.name, "new")
	w.awaitLandscape(base.name, func(l *landscapev1alpha1.Landscape) bool {
		return condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling) != nil && l.Status.ObservedGeneration == l.Generation
	})
	top.commit("a new one", map[string]string{"a.yaml": top.configMap("a", "2")})
	w.eventually("it is applied", func() bool { return w.configMapValue("a") == "2" })
	assert.Equal(t, "x", w.configMapValue("m299"), "all that it depends on is there")
}

// TestFollowFolderChange: a follower learns that the folder waits, not that the commit is
// applied from the previous folder.
func TestFollowFolderChange(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("folders-followed")
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	commit := s.push("both", s.twoFolders("1", "1"))
	w.startOperator()
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver, withFolder("old"))
	w.awaitReady(s.name, "True Applied: ")
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Path, l.Spec.Windows = "new", closedWindows })
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), " Waiting: ") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last, _, err := w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: "somebody"}, func(receiver.Progress) {})
	require.NoError(t, err)
	assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, w.role.Clock, "somebody")
	require.NoError(t, err)
	last = receiver.Progress{}
	// It may still be validated, before it waits.
	for last = range FollowObject(ctx, w.role.Clock, handle.Get, commit) {
	}
	assert.True(t, last.Done)
	assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
}
