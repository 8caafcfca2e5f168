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
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/source/gittest"
)

// refusedMap is a ConfigMap in a missing namespace: a commit with it fails halfway.
func (r *repository) refusedMap() string {
	return strings.Replace(r.configMap("refused", "1"), "namespace: "+r.namespace, "namespace: "+r.namespace+"-missing", 1)
}

// makeRoom creates that namespace.
func (w *world) makeRoom() {
	w.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-missing"}})
}

// atRest reports whether the current generation is observed and no sync is in progress.
func atRest(o *landscapev1alpha1.Landscape) bool {
	return o.Status.ObservedGeneration == o.Generation && o.Status.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing
}

// failed waits until a commit has failed.
func (w *world) failed(name, commit string) {
	w.Helper()
	w.await(name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readiness(l), "False ApplyFailed") && strings.HasSuffix(l.Status.LastAttemptedRevision, commit)
	})
}

func (w *world) uid(name string) string {
	w.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(w, client.IgnoreNotFound(w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, cm)))
	return string(cm.UID)
}

func demandsReview(spec *landscapev1alpha1.LandscapeSpec) {
	spec.Review = landscapev1alpha1.ReviewRequired
}

// closed is a window that stays closed for a long time.
var closed = []landscapev1alpha1.SyncWindow{{Schedule: "0 0 29 2 *", Duration: metav1.Duration{Duration: time.Minute}}}

// TestWhatFailedHalfwayDoesNotGoBack: a commit failed halfway, and nothing newer can be applied.
// The partial revision is not reverted, neither by a restart nor by a short suspension.
func TestWhatFailedHalfwayDoesNotGoBack(t *testing.T) {
	again := map[string]func(w *world, name string, stop func()){
		"started anew": func(w *world, _ string, stop func()) {
			stop()
			w.start()
		},
		"suspended": func(w *world, name string, _ func()) {
			w.suspend(name, true)
			w.await(name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), "Suspended") })
			w.suspend(name, false)
		},
	}
	type landscapes struct{ half, ground *repository }
	for name, test := range map[string]struct {
		// until runs until nothing newer can be applied.
		until func(w *world, l landscapes)
		// then checks the state afterwards.
		then func(w *world, l landscapes, commit string)
		// after lets the commit continue; nil if nothing blocks it.
		after func(w *world, l landscapes)
	}{
		"the next one is invalid": {
			func(w *world, l landscapes) {
				l.half.commit("broken", map[string]string{"broken.yaml": "a: b: c\n"})
				w.ready(l.half.name, "False Invalid")
			},
			func(w *world, l landscapes, commit string) {
				require.NoError(w, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: l.half.name + "-a"}}))
				w.eventually("it is kept as it was tried", func() bool { return w.value(l.half.name+"-a") == "2" })
				w.ready(l.half.name, "False Invalid")
			}, nil,
		},
		"the window is closed": {
			func(w *world, l landscapes) {
				w.change(l.half.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = closed })
				w.await(l.half.name, atRest)
			},
			func(w *world, l landscapes, commit string) {
				w.await(l.half.name, func(o *landscapev1alpha1.Landscape) bool {
					return strings.HasPrefix(readiness(o), "False ") && strings.Contains(readiness(o), commit+" began since and was not completed, and it cannot go on: no window is open")
				})
			},
			func(w *world, l landscapes) {
				w.change(l.half.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = nil })
			},
		},
		"another Landscape is not ready": {
			func(w *world, l landscapes) {
				l.ground.commit("broken", map[string]string{"broken.yaml": "a: b: c\n"})
				w.ready(l.ground.name, "False Invalid")
			},
			func(w *world, l landscapes, commit string) {
				w.await(l.half.name, func(o *landscapev1alpha1.Landscape) bool {
					return strings.HasPrefix(readiness(o), "False ") && strings.Contains(readiness(o), commit+" began since and was not completed, and it cannot go on: waiting for Landscape "+l.ground.name)
				})
			},
			func(w *world, l landscapes) { l.ground.commit("mended", map[string]string{"broken.yaml": ""}) },
		},
	} {
		for how, begin := range again {
			t.Run(name+", "+how, func(t *testing.T) {
				w := newWorld(t)
				l := landscapes{w.repository("half-" + w.namespace), w.repository("ground-" + w.namespace)}
				l.ground.commit("own", map[string]string{"a.yaml": l.ground.configMap(l.ground.name, "1")})
				l.half.commit("own", map[string]string{"a.yaml": l.half.configMap(l.half.name+"-a", "1")})
				stop := w.start()
				w.landscape(l.ground.name, l.ground)
				w.landscape(l.half.name, l.half, func(spec *landscapev1alpha1.LandscapeSpec) {
					spec.DependsOn = []landscapev1alpha1.Dependency{{Name: l.ground.name}}
				})
				w.ready(l.half.name, "True Applied")
				commit := l.half.commit("fails halfway", map[string]string{
					"a.yaml": l.half.configMap(l.half.name+"-a", "2"), "x.yaml": l.half.configMap("x", "1"), "refused.yaml": l.half.refusedMap(),
				})
				w.failed(l.half.name, commit)
				assert.Equal(t, []landscapev1alpha1.TriedRevision{{Revision: "main@sha1:" + commit, Path: "."}}, w.get(l.half.name).Status.Tried)
				made := w.uid("x")
				require.NotEmpty(t, made)
				test.until(w, l)
				begin(w, l.half.name, stop)
				test.then(w, l, commit)
				assert.Equal(t, "2", w.value(l.half.name+"-a"))
				assert.Equal(t, made, w.uid("x"))
				w.makeRoom()
				if test.after == nil {
					return
				}
				test.after(w, l)
				w.ready(l.half.name, "True Applied: main@sha1:"+commit)
				assert.Equal(t, made, w.uid("x"))
				assert.Empty(t, w.get(l.half.name).Status.Tried)
			})
		}
	}
}

// TestWhatFailedHalfwayIsTriedAgainBehindAnInvalidOne: a partial commit before an invalid one is
// retried until it is complete, also after a restart. Its failure is reported beside the error of
// the newer one.
func TestWhatFailedHalfwayIsTriedAgainBehindAnInvalidOne(t *testing.T) {
	for name, restarts := range map[string]bool{"in one process": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.repository("behind-" + w.namespace)
			stop := w.start()
			w.landscape(r.name, r)
			w.ready(r.name, "True Applied")
			half := r.commit("fails halfway", map[string]string{"x.yaml": r.configMap("x", "1"), "refused.yaml": r.refusedMap()})
			w.failed(r.name, half)
			r.commit("invalid", map[string]string{"broken.yaml": "a: b: c\n"})
			if restarts {
				stop()
				w.start()
			}
			w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
				return strings.HasPrefix(readiness(l), "False Invalid") && strings.Contains(readiness(l), half+" stays applied in part") &&
					strings.Contains(readiness(l), half+" is tried again: ")
			})
			records := len(w.get(r.name).Status.History)
			w.makeRoom()
			l := w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
				return strings.HasSuffix(l.Status.LastAppliedRevision, half) && strings.HasPrefix(readiness(l), "False Invalid") && len(l.Status.Tried) == 0
			})
			assert.NotContains(t, readiness(l), "in part")
			assert.LessOrEqual(t, len(l.Status.History), records+1, "a failure that comes to the same has no record of its own: %+v", l.Status.History)
			mended := r.commit("mended", map[string]string{"broken.yaml": ""})
			w.ready(r.name, "True Applied: main@sha1:"+mended)
		})
	}
}

// TestWhenACommitGoesOn: a partial commit continues only where a sync of it could begin.
func TestWhenACommitGoesOn(t *testing.T) {
	never := []landscapev1alpha1.SyncWindow{{Schedule: "0 0 30 2 *", Duration: metav1.Duration{Duration: time.Minute}}}
	for name, test := range map[string]struct {
		tried []string
		spec  func(*landscapev1alpha1.LandscapeSpec)
		inGit []landscapev1alpha1.SyncWindow
		want  string
	}{
		"completed":                   {nil, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Windows = closed }, closed, ""},
		"nothing in its way":          {[]string{"main@sha1:b"}, func(*landscapev1alpha1.LandscapeSpec) {}, nil, ""},
		"the window is closed":        {[]string{"main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Windows = closed }, nil, "no window is open"},
		"the window in Git is closed": {[]string{"main@sha1:b"}, func(*landscapev1alpha1.LandscapeSpec) {}, never, "no window is open"},
		"a window that is none": {[]string{"main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "x"}}
		}, nil, "spec.windows[0]"},
		"it is the one that is pinned": {[]string{"main@sha1:a", "main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Pin = &landscapev1alpha1.Pin{Revision: "b"} }, nil, ""},
		"another one is pinned":        {[]string{"main@sha1:a", "main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Pin = &landscapev1alpha1.Pin{Revision: "a"} }, nil, "pinned to another one"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &syncer{object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}}
			test.spec(&s.object.Spec)
			s.status.now.Tried, s.status.now.Windows = thoseTried(test.tried...), test.inGit
			err := s.cannotGoOn(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "a sync of main@sha1:b began since and was not completed, and it cannot go on: ")
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// TestAWindowThatNeverOpensIsRefused: such a window would block every commit, also its removal.
func TestAWindowThatNeverOpensIsRefused(t *testing.T) {
	w := newWorld(t)
	r := w.repository("never-" + w.namespace)
	w.start()
	w.landscape(r.name, r)
	w.ready(r.name, "True Applied")
	r.commit("never", map[string]string{"landscape.yaml": r.config("  windows:\n  - {schedule: \"0 0 30 2 *\", duration: 1m}\n")})
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readiness(l), "False Invalid") && strings.Contains(readiness(l), "spec.windows: none of them ever opens")
	})
	mended := r.commit("mended", map[string]string{"landscape.yaml": r.config("")})
	w.ready(r.name, "True Applied: main@sha1:"+mended)
	now := time.Now().UTC()
	around := landscapev1alpha1.SyncWindow{Schedule: fmt.Sprintf("0 %d * * *", (now.Hour()+23)%24), Duration: metav1.Duration{Duration: 3 * time.Hour}}
	w.change(r.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = []landscapev1alpha1.SyncWindow{around} })
	r.commit("never both", map[string]string{"landscape.yaml": r.config(fmt.Sprintf("  windows:\n  - {schedule: \"0 %d * * *\", duration: 1h}\n", (now.Hour()+8)%24))})
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readiness(l), "False Invalid") && strings.Contains(readiness(l), "none of them is ever open while one of the Landscape in the cluster is")
	})
	mended = r.commit("mended", map[string]string{"landscape.yaml": r.config("")})
	w.ready(r.name, "True Applied: main@sha1:"+mended)
}

// TestReadyOnlyWhenComplete: an invalid and a waiting commit follow a partial one. They do not make
// the Landscape ready. Git that returns to the partial commit has it retried.
func TestReadyOnlyWhenComplete(t *testing.T) {
	w := newWorld(t)
	ground, r := w.repository("ground-"+w.namespace), w.repository("half-"+w.namespace)
	ground.commit("own", map[string]string{"a.yaml": ground.configMap(ground.name, "1")})
	r.commit("own", map[string]string{"a.yaml": r.configMap(r.name, "1")})
	w.start()
	w.landscape(ground.name, ground)
	w.landscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DependsOn = []landscapev1alpha1.Dependency{{Name: ground.name}}
	})
	w.ready(r.name, "True Applied")
	half := r.commit("fails halfway", map[string]string{"x.yaml": r.configMap("x", "1"), "refused.yaml": r.refusedMap()})
	w.failed(r.name, half)
	r.commit("invalid", map[string]string{"broken.yaml": "a: b: c\n"})
	w.ready(r.name, "False Invalid")
	ground.commit("broken", map[string]string{"broken.yaml": "a: b: c\n"})
	w.ready(ground.name, "False Invalid")
	waits := r.commit("waits", map[string]string{"broken.yaml": "", "more.yaml": r.configMap("more", "1")})
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(sourceAt(l), waits) && strings.HasPrefix(readiness(l), "False ApplyFailed")
	})
	r.git("reset", "-q", "--hard", half)
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(sourceAt(l), half) })
	w.makeRoom()
	ground.commit("mended", map[string]string{"broken.yaml": ""})
	w.ready(r.name, "True Applied: main@sha1:"+half)
}

// TestWindowsInGitCountAfterARestart: the windows of the applied landscape.yaml count before
// anything is read.
func TestWindowsInGitCountAfterARestart(t *testing.T) {
	w := newWorld(t)
	r := w.repository("gitwindows-" + w.namespace)
	r.commit("a window", map[string]string{"landscape.yaml": r.config("  windows:\n  - {schedule: \"0 0 29 2 *\", duration: 1m}\n")})
	stop := w.start()
	w.landscape(r.name, r)
	w.ready(r.name, "True Applied")
	stop()
	waits := r.commit("waits", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.start()
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readiness(l), "waiting for the next window") && strings.Contains(sourceAt(l), waits)
	})
	assert.Equal(t, "1", w.value("a"))
	w.change(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Pin = &landscapev1alpha1.Pin{Revision: waits} })
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), "PINNED") })
	assert.Equal(t, "1", w.value("a"), "a pin waits, too")
}

// TestWhoTakesACommitBackSeesWhatItMade: a revert deletes the objects of a partial commit without
// an approval. It may fail at first, or come while no operator runs. A review counts once for
// seeds, too.
func TestWhoTakesACommitBackSeesWhatItMade(t *testing.T) {
	back := map[string]string{"x.yaml": ""}
	for name, revert := range map[string]func(w *world, r *repository, stop func()) string{
		"it fails at first": func(w *world, r *repository, _ func()) string {
			commit := r.commit("back", back)
			w.failed(r.name, commit)
			w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.NextSync != nil })
			w.makeRoom()
			return commit
		},
		"over a restart": func(w *world, r *repository, stop func()) string {
			stop()
			commit := r.commit("back", back)
			w.makeRoom()
			w.start()
			return commit
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.repository("back-" + w.namespace)
			stop := w.start()
			w.landscape(r.name, r, demandsReview)
			w.ready(r.name, "True Applied")
			w.failed(r.name, r.commit("fails halfway", map[string]string{"x.yaml": r.configMap("x", "1"), "refused.yaml": r.refusedMap()}))
			require.Equal(t, "1", w.value("x"))
			commit := revert(w, r, stop)
			w.ready(r.name, "True Applied: main@sha1:"+commit)
			w.eventually("it is gone", func() bool { return w.uid("x") == "" })
			assert.Empty(t, w.get(r.name).Status.Held)
		})
	}
}

// TestOneReviewCountsOnceOverTries: retries of a commit share one review, which allows a recreation
// once.
func TestOneReviewCountsOnceOverTries(t *testing.T) {
	w := newWorld(t)
	r := w.repository("tries-" + w.namespace)
	r.commit("r", map[string]string{"r.yaml": r.recreatable("r", "1") + "immutable: true\n"})
	w.start()
	w.landscape(r.name, r, demandsReview)
	w.ready(r.name, "True Applied")
	w.failed(r.name, r.commit("fails", map[string]string{"refused.yaml": r.refusedMap()}))
	w.failed(r.name, r.commit("recreates", map[string]string{"r.yaml": r.recreatable("r", "2") + "immutable: true\n"}))
	w.eventually("it is made anew", func() bool { return w.value("r") == "2" })
	// Meanwhile somebody replaces the object.
	w.suspend(r.name, true)
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), "Suspended") })
	cm := &corev1.ConfigMap{}
	require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "r"}, cm))
	require.NoError(t, w.client.Delete(context.Background(), cm))
	cm.ResourceVersion, cm.UID, cm.ManagedFields, cm.Data["value"] = "", "", nil, "by hand"
	w.create(cm)
	byHand := w.uid("r")
	w.suspend(r.name, false)
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.Held) == 1 && l.Status.Held[0].Object == "ConfigMap "+w.namespace+"/r"
	})
	assert.Equal(t, byHand, w.uid("r"))
}

// TestAReviewOfASeedIsCompletedOverTries: the review of a seed in a commit's first try ends when a
// later try completes.
func TestAReviewOfASeedIsCompletedOverTries(t *testing.T) {
	w := newWorld(t)
	w.Cleanup(func() {
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.Namespace("local")))
	})
	more := func(names ...string) map[string]string {
		text := ""
		for _, name := range names {
			text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shoot--local--local}\n"
		}
		const overlay = "components/shoot/b/"
		return map[string]string{overlay + "more.yaml": text, overlay + "kustomization.yaml": "resources: [more.yaml]\n"}
	}
	files := more("m1")
	files["shoot.yaml"] = strings.Replace(shootFile(t), "  region: local\n", "  region: local\n  seedName: local\n", 1)
	s := w.shoots("tries", files)
	w.start(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL), demandsReview)
	w.applied(s, "", "1")
	two := more("m1", "m2")
	two["refused.yaml"] = s.refusedMap()
	w.failed(s.name, s.push("one more", two))
	back := s.push("it goes again", more("m1"))
	w.failed(s.name, back)
	w.makeRoom()
	w.await(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, back)
	})
	w.eventually("it is completed", func() bool {
		m := w.forSeed(seedpublication.ReviewName)
		return m != nil && m.Data["number"] != "" && m.Data["number"] == m.Data["complete"] && strings.Contains(m.Data["seen"], "m2")
	})
}

// sourceAt returns the message of the condition SourceReady.
func sourceAt(l *landscapev1alpha1.Landscape) string {
	for _, c := range l.Status.Conditions {
		if c.Type == landscapev1alpha1.LandscapeSourceReady {
			return c.Message
		}
	}
	return ""
}
