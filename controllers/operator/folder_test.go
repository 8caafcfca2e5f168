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

// inFolders has two landscapes of one name in one repository, each with an immutable object.
func (r *repository) inFolders(old, new string) map[string]string {
	return map[string]string{
		"old/landscape.yaml": r.config(""), "old/v.yaml": r.immutable("v", old),
		"new/landscape.yaml": r.config(""), "new/v.yaml": r.immutable("v", new), "new/w.yaml": r.configMap("w", "new"),
	}
}

func inFolder(path string) func(*landscapev1alpha1.LandscapeSpec) {
	return func(spec *landscapev1alpha1.LandscapeSpec) { spec.Source.Path = path }
}

// moveTo changes the folder in the spec.
func (w *world) moveTo(name, path string) {
	w.Helper()
	w.change(name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Path = path })
}

// lose deletes a ConfigMap that the operator then repairs.
func (w *world) lose(name string) {
	w.Helper()
	require.NoError(w, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}))
}

// TestAnotherFolder: every process rejects the immutable change in another folder, of the same or
// another commit. The applied revision is maintained from its folder.
func TestAnotherFolder(t *testing.T) {
	for name, newer := range map[string]bool{"of the same commit": false, "of another one": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.repository("folders")
			commit := r.commit("both", r.inFolders("1", "2"))
			stop := w.start()
			w.landscape(r.name, r, inFolder("old"))
			l := w.ready(r.name, "True Applied: ")
			assert.Equal(t, "old", l.Status.LastAppliedPath)
			if newer {
				commit = r.commit("something else", map[string]string{"README.md": "nothing"})
				w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
					return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
				})
			}
			stop()
			w.moveTo(r.name, "new")
			if newer {
				commit = r.commit("in the new one", map[string]string{"new/w.yaml": r.configMap("w", "newer")})
			}
			w.lose("v")
			refused := func() {
				t.Helper()
				l := w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
					return strings.HasPrefix(readiness(l), "False Invalid: ") && strings.Contains(readiness(l), commit)
				})
				assert.Contains(t, readiness(l), "must not change: the object is immutable")
				w.eventually("what is applied is kept", func() bool { return w.value("v") == "1" })
				assert.Empty(t, w.value("w"))
				assert.Equal(t, "old", w.get(r.name).Status.LastAppliedPath)
			}
			stop = w.start()
			refused()
			w.lose("v") // between syncs, too
			refused()
			stop()
			w.lose("v")
			w.start()
			refused()

			r.commit("it does not change any more", map[string]string{"new/v.yaml": r.immutable("v", "1")})
			l = w.ready(r.name, "True Applied: ")
			assert.Equal(t, "new", l.Status.LastAppliedPath)
			assert.NotEmpty(t, w.value("w"))
		})
	}
}

// TestAnotherFolderWaits: another folder waits for a window as another commit does, also of the
// same commit and after a restart. Its errors are reported at once.
func TestAnotherFolderWaits(t *testing.T) {
	w := newWorld(t)
	r := w.repository("folders-wait")
	commit := r.commit("both", r.inFolders("1", "2"))
	stop := w.start()
	w.landscape(r.name, r, inFolder("old"))
	w.ready(r.name, "True Applied: ")
	stop()
	w.change(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: hourly(8), Duration: metav1.Duration{Duration: time.Hour}}}
	})
	w.moveTo(r.name, "new")
	w.lose("v")
	w.start()
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readiness(l), "False Invalid: ") && strings.Contains(readiness(l), "must not change: the object is immutable")
	})
	w.eventually("what is applied is kept", func() bool { return w.value("v") == "1" })
	right := r.commit("it does not change any more", map[string]string{"new/v.yaml": r.immutable("v", "1")})
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readiness(l), " Waiting: ") && strings.Contains(readiness(l), right)
	})
	assert.Empty(t, w.value("w"))
	l := w.get(r.name)
	assert.True(t, strings.HasSuffix(l.Status.LastAppliedRevision, commit))
	assert.Equal(t, "old", l.Status.LastAppliedPath)
	assert.Contains(t, readiness(l), commit+" (folder old) is applied")
	w.change(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Windows = nil })
	l = w.ready(r.name, "True Applied: ")
	assert.Equal(t, "new", l.Status.LastAppliedPath)
	assert.Equal(t, "new", w.value("w"))
}

// TestAnotherFolderHalfway: a partial revision is continued from its folder while the next one is
// rejected, also after a restart.
func TestAnotherFolderHalfway(t *testing.T) {
	w := newWorld(t)
	r := w.repository("folders-halfway")
	commit := r.commit("both", r.inFolders("1", "1"))
	stop := w.start()
	w.landscape(r.name, r, inFolder("old"))
	w.ready(r.name, "True Applied: ")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "w"}, Data: map[string]string{"value": "theirs"}}
	require.NoError(t, w.client.Create(context.Background(), theirs, client.FieldOwner("mytool")))
	w.moveTo(r.name, "new")
	l := w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), "mytool") })
	assert.Equal(t, []landscapev1alpha1.TriedRevision{{Revision: "main@sha1:" + commit, Path: "new"}}, l.Status.Tried)
	stop()
	w.moveTo(r.name, "nowhere")
	w.lose("v")
	w.lose("w")
	w.start()
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readiness(l), "the folder nowhere (spec.source.path) has no file landscape.yaml")
	})
	w.eventually("it is gone on with", func() bool {
		l := w.get(r.name)
		return w.value("v") == "1" && w.value("w") == "new" && l.Status.LastAppliedPath == "new" && len(l.Status.Tried) == 0
	})
}

// TestAnotherFolderWhileTheSourceIsGone: without the source the old folder is applied at its
// interval, although the cache has the new one.
func TestAnotherFolderWhileTheSourceIsGone(t *testing.T) {
	w := newWorld(t)
	r := w.repository("folders-gone")
	r.commit("both", r.inFolders("1", "1"))
	stop := w.start()
	w.landscape(r.name, r, inFolder("old"))
	w.ready(r.name, "True Applied: ")
	stop()
	w.moveTo(r.name, "new")
	w.lose("v")
	require.NoError(t, os.Rename(r.dir, r.dir+".away"))
	w.start()
	w.eventually("it is kept", func() bool { return w.value("v") == "1" })
	before := w.syncs()
	w.change(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
	})
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.LastHandledSyncRequest == "now" })
	w.lose("v")
	w.eventually("it is kept", func() bool { return w.value("v") == "1" })
	assert.LessOrEqual(t, w.syncs()-before, 2)
	assert.Empty(t, w.value("w"))
	require.NoError(t, os.Rename(r.dir+".away", r.dir))
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.LastAppliedPath == "new" })
	assert.Equal(t, "new", w.value("w"))
}

// TestAnotherFolderIsNotReady: dependents wait for another folder as for another commit.
func TestAnotherFolderIsNotReady(t *testing.T) {
	w := newWorld(t)
	base, top := w.repository("folders-base"), w.repository("folders-top")
	files := base.inFolders("1", "1")
	for i := range 300 {
		files[fmt.Sprintf("new/m%d.yaml", i)] = base.configMap(fmt.Sprintf("m%d", i), "x")
	}
	base.commit("both", files)
	w.start()
	w.landscape(base.name, base, inFolder("old"))
	w.ready(base.name, "True Applied: ")
	w.landscape(top.name, top, func(s *landscapev1alpha1.LandscapeSpec) {
		s.DependsOn = []landscapev1alpha1.Dependency{{Name: base.name}}
	})
	w.ready(top.name, "True Applied: ")
	w.moveTo(base.name, "new")
	w.await(base.name, func(l *landscapev1alpha1.Landscape) bool {
		return condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling) != nil && l.Status.ObservedGeneration == l.Generation
	})
	top.commit("a new one", map[string]string{"a.yaml": top.configMap("a", "2")})
	w.eventually("it is applied", func() bool { return w.value("a") == "2" })
	assert.Equal(t, "x", w.value("m299"), "all that it depends on is there")
}

// TestWhoFollowsAnotherFolder: a follower learns that the folder waits, not that the commit is
// applied from the previous folder.
func TestWhoFollowsAnotherFolder(t *testing.T) {
	w := newWorld(t)
	s := w.served("folders-followed")
	w.secret("hook", map[string]string{"token": "hook-token"})
	commit := s.push("both", s.inFolders("1", "1"))
	w.start()
	w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL), w.hooked, inFolder("old"))
	w.ready(s.name, "True Applied: ")
	w.change(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Path, l.Spec.Windows = "new", closed })
	w.await(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), " Waiting: ") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last, _, err := w.asks().Ask(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, By: "somebody"}, func(receiver.Progress) {})
	require.NoError(t, err)
	assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
	handle, err := NewHandle(server.config, receiver.Key{Namespace: w.namespace, Name: s.name}, w.role.Clock, "somebody")
	require.NoError(t, err)
	last = receiver.Progress{}
	// It may still be validated, before it waits.
	for last = range FollowObject(ctx, w.role.Clock, handle.Get, commit) {
	}
	assert.True(t, last.Done)
	assert.Equal(t, receiver.PhaseHeld, last.Phase, last)
}
