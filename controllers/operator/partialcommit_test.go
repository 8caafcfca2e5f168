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
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/source/gittest"
)

// rejectedConfigMap is a ConfigMap in a missing namespace: a commit with it fails halfway.
func (r *testRepository) rejectedConfigMap() string {
	return strings.Replace(r.configMap("refused", "1"), "namespace: "+r.namespace, "namespace: "+r.namespace+"-missing", 1)
}

// createMissingNamespace creates that namespace.
func (w *testEnv) createMissingNamespace() {
	w.Helper()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-missing"}})
}

// isSettledLandscape reports whether the current generation is observed and no sync is in progress.
func isSettledLandscape(o *landscapev1alpha1.Landscape) bool {
	return o.Status.ObservedGeneration == o.Generation && o.Status.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing
}

// awaitFailed waits until a commit has failed.
func (w *testEnv) awaitFailed(name, commit string) {
	w.Helper()
	w.awaitLandscape(name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False ApplyFailed") && strings.HasSuffix(l.Status.LastAttemptedRevision, commit)
	})
}

func (w *testEnv) configMapUID(name string) string {
	w.Helper()
	cm := &corev1.ConfigMap{}
	require.NoError(w, client.IgnoreNotFound(w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, cm)))
	return string(cm.UID)
}

func requireReview(spec *landscapev1alpha1.LandscapeSpec) {
	spec.Review = landscapev1alpha1.ReviewRequired
}

// closedWindows is a window that stays closed for a long time.
var closedWindows = []landscapev1alpha1.SyncWindow{{Schedule: "0 0 29 2 *", Duration: metav1.Duration{Duration: time.Minute}}}

// TestPartialCommitIsNotReverted: a commit failed halfway, and nothing newer can be applied.
// The partial revision is not reverted, neither by a restart nor by a short suspension.
func TestPartialCommitIsNotReverted(t *testing.T) {
	again := map[string]func(w *testEnv, name string, stop func()){
		"started anew": func(w *testEnv, _ string, stop func()) {
			stop()
			w.startOperator()
		},
		"suspended": func(w *testEnv, name string, _ func()) {
			w.suspend(name, true)
			w.awaitLandscape(name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), "Suspended") })
			w.suspend(name, false)
		},
	}
	type landscapes struct{ half, ground *testRepository }
	for name, test := range map[string]struct {
		// until runs until nothing newer can be applied.
		until func(w *testEnv, l landscapes)
		// then checks the state afterwards.
		then func(w *testEnv, l landscapes, commit string)
		// after lets the commit continue; it is nil if nothing blocks it.
		after func(w *testEnv, l landscapes)
	}{
		"the next one is invalid": {
			func(w *testEnv, l landscapes) {
				l.half.commit("broken", map[string]string{"broken.yaml": "a: b: c\n"})
				w.awaitReady(l.half.name, "False Invalid")
			},
			func(w *testEnv, l landscapes, commit string) {
				require.NoError(w, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: l.half.name + "-a"}}))
				w.eventually("it is kept as it was tried", func() bool { return w.configMapValue(l.half.name+"-a") == "2" })
				w.awaitReady(l.half.name, "False Invalid")
			}, nil,
		},
		"the window is closed": {
			func(w *testEnv, l landscapes) {
				w.changeLandscape(l.half.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = closedWindows })
				w.awaitLandscape(l.half.name, isSettledLandscape)
			},
			func(w *testEnv, l landscapes, commit string) {
				w.awaitLandscape(l.half.name, func(o *landscapev1alpha1.Landscape) bool {
					return strings.HasPrefix(readyText(o), "False ") && strings.Contains(readyText(o), commit+" did not complete and cannot continue: no window is open")
				})
			},
			func(w *testEnv, l landscapes) {
				w.changeLandscape(l.half.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = nil })
			},
		},
		"another Landscape is not ready": {
			func(w *testEnv, l landscapes) {
				l.ground.commit("broken", map[string]string{"broken.yaml": "a: b: c\n"})
				w.awaitReady(l.ground.name, "False Invalid")
			},
			func(w *testEnv, l landscapes, commit string) {
				w.awaitLandscape(l.half.name, func(o *landscapev1alpha1.Landscape) bool {
					return strings.HasPrefix(readyText(o), "False ") && strings.Contains(readyText(o), commit+" did not complete and cannot continue: waiting for Landscape "+l.ground.name)
				})
			},
			func(w *testEnv, l landscapes) { l.ground.commit("mended", map[string]string{"broken.yaml": ""}) },
		},
	} {
		for how, begin := range again {
			t.Run(name+", "+how, func(t *testing.T) {
				w := newTestEnv(t)
				l := landscapes{w.newRepository("half-" + w.namespace), w.newRepository("ground-" + w.namespace)}
				l.ground.commit("own", map[string]string{"a.yaml": l.ground.configMap(l.ground.name, "1")})
				l.half.commit("own", map[string]string{"a.yaml": l.half.configMap(l.half.name+"-a", "1")})
				stop := w.startOperator()
				w.createLandscape(l.ground.name, l.ground)
				w.createLandscape(l.half.name, l.half, func(spec *landscapev1alpha1.LandscapeSpec) {
					spec.DependsOn = []landscapev1alpha1.Dependency{{Name: l.ground.name}}
				})
				w.awaitReady(l.half.name, "True Applied")
				commit := l.half.commit("fails halfway", map[string]string{
					"a.yaml": l.half.configMap(l.half.name+"-a", "2"), "x.yaml": l.half.configMap("x", "1"), "refused.yaml": l.half.rejectedConfigMap(),
				})
				w.awaitFailed(l.half.name, commit)
				assert.Equal(t, []landscapev1alpha1.TriedRevision{{Revision: "main@sha1:" + commit, Path: "."}}, w.getLandscape(l.half.name).Status.Tried)
				made := w.configMapUID("x")
				require.NotEmpty(t, made)
				test.until(w, l)
				begin(w, l.half.name, stop)
				test.then(w, l, commit)
				assert.Equal(t, "2", w.configMapValue(l.half.name+"-a"))
				assert.Equal(t, made, w.configMapUID("x"))
				w.createMissingNamespace()
				if test.after == nil {
					return
				}
				test.after(w, l)
				w.awaitReady(l.half.name, "True Applied: main@sha1:"+commit)
				assert.Equal(t, made, w.configMapUID("x"))
				assert.Empty(t, w.getLandscape(l.half.name).Status.Tried)
			})
		}
	}
}

// TestPartialCommitIsRetriedBeforeInvalidOne: a partial commit before an invalid one is
// retried until it is complete, also after a restart. Its failure is reported beside the error of
// the newer one.
func TestPartialCommitIsRetriedBeforeInvalidOne(t *testing.T) {
	for name, restarts := range map[string]bool{"in one process": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			r := w.newRepository("behind-" + w.namespace)
			stop := w.startOperator()
			w.createLandscape(r.name, r)
			w.awaitReady(r.name, "True Applied")
			half := r.commit("fails halfway", map[string]string{"x.yaml": r.configMap("x", "1"), "refused.yaml": r.rejectedConfigMap()})
			w.awaitFailed(r.name, half)
			r.commit("invalid", map[string]string{"broken.yaml": "a: b: c\n"})
			if restarts {
				stop()
				w.startOperator()
			}
			w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
				return strings.HasPrefix(readyText(l), "False Invalid") && strings.Contains(readyText(l), half+" stays applied in part") &&
					strings.Contains(readyText(l), "retrying main@sha1:"+half+": ")
			})
			records := len(w.getLandscape(r.name).Status.History)
			w.createMissingNamespace()
			l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
				return strings.HasSuffix(l.Status.LastAppliedRevision, half) && strings.HasPrefix(readyText(l), "False Invalid") && len(l.Status.Tried) == 0
			})
			assert.NotContains(t, readyText(l), "in part")
			assert.LessOrEqual(t, len(l.Status.History), records+1, "a failure that comes to the same has no record of its own: %+v", l.Status.History)
			mended := r.commit("mended", map[string]string{"broken.yaml": ""})
			w.awaitReady(r.name, "True Applied: main@sha1:"+mended)
		})
	}
}

// TestPartialRetryBlocker: a partial commit continues only where a sync of it could begin.
func TestPartialRetryBlocker(t *testing.T) {
	never := []landscapev1alpha1.SyncWindow{{Schedule: "0 0 30 2 *", Duration: metav1.Duration{Duration: time.Minute}}}
	for name, test := range map[string]struct {
		tried []string
		spec  func(*landscapev1alpha1.LandscapeSpec)
		inGit []landscapev1alpha1.SyncWindow
		want  string
	}{
		"completed":                   {nil, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Windows = closedWindows }, closedWindows, ""},
		"nothing in its way":          {[]string{"main@sha1:b"}, func(*landscapev1alpha1.LandscapeSpec) {}, nil, ""},
		"the window is closed":        {[]string{"main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Windows = closedWindows }, nil, "no window is open"},
		"the window in Git is closed": {[]string{"main@sha1:b"}, func(*landscapev1alpha1.LandscapeSpec) {}, never, "no window is open"},
		"a window that is none": {[]string{"main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "x"}}
		}, nil, "spec.windows[0]"},
		"it is the one that is pinned": {[]string{"main@sha1:a", "main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Pin = &landscapev1alpha1.Pin{Revision: "b"} }, nil, ""},
		"another one is pinned":        {[]string{"main@sha1:a", "main@sha1:b"}, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Pin = &landscapev1alpha1.Pin{Revision: "a"} }, nil, "pinned to another revision"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &landscapeReconciler{object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}}
			test.spec(&s.object.Spec)
			s.status.desired.Tried, s.status.desired.Windows = triedRevisions(test.tried...), test.inGit
			err := s.partialRetryBlocker(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "a later sync of main@sha1:b did not complete and cannot continue: ")
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// TestNeverOpenWindowIsRejected: such a window would block every commit, also its removal.
func TestNeverOpenWindowIsRejected(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("never-" + w.namespace)
	w.startOperator()
	w.createLandscape(r.name, r)
	w.awaitReady(r.name, "True Applied")
	r.commit("never", map[string]string{"landscape.yaml": r.landscapeFile("  windows:\n  - {schedule: \"0 0 30 2 *\", duration: 1m}\n")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False Invalid") && strings.Contains(readyText(l), "spec.windows: none of them ever opens")
	})
	mended := r.commit("mended", map[string]string{"landscape.yaml": r.landscapeFile("")})
	w.awaitReady(r.name, "True Applied: main@sha1:"+mended)
	now := time.Now().UTC()
	around := landscapev1alpha1.SyncWindow{Schedule: fmt.Sprintf("0 %d * * *", (now.Hour()+23)%24), Duration: metav1.Duration{Duration: 3 * time.Hour}}
	w.changeLandscape(r.name, func(o *landscapev1alpha1.Landscape) { o.Spec.Windows = []landscapev1alpha1.SyncWindow{around} })
	r.commit("never both", map[string]string{"landscape.yaml": r.landscapeFile(fmt.Sprintf("  windows:\n  - {schedule: \"0 %d * * *\", duration: 1h}\n", (now.Hour()+8)%24))})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False Invalid") && strings.Contains(readyText(l), "no window overlaps with one of the Landscape in the cluster")
	})
	mended = r.commit("mended", map[string]string{"landscape.yaml": r.landscapeFile("")})
	w.awaitReady(r.name, "True Applied: main@sha1:"+mended)
}

// TestPartialCommitIsNotReady: an invalid and a waiting commit follow a partial one. They do not
// make the Landscape ready. Git that returns to the partial commit has it retried.
func TestPartialCommitIsNotReady(t *testing.T) {
	w := newTestEnv(t)
	ground, r := w.newRepository("ground-"+w.namespace), w.newRepository("half-"+w.namespace)
	ground.commit("own", map[string]string{"a.yaml": ground.configMap(ground.name, "1")})
	r.commit("own", map[string]string{"a.yaml": r.configMap(r.name, "1")})
	w.startOperator()
	w.createLandscape(ground.name, ground)
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.DependsOn = []landscapev1alpha1.Dependency{{Name: ground.name}}
	})
	w.awaitReady(r.name, "True Applied")
	half := r.commit("fails halfway", map[string]string{"x.yaml": r.configMap("x", "1"), "refused.yaml": r.rejectedConfigMap()})
	w.awaitFailed(r.name, half)
	r.commit("invalid", map[string]string{"broken.yaml": "a: b: c\n"})
	w.awaitReady(r.name, "False Invalid")
	ground.commit("broken", map[string]string{"broken.yaml": "a: b: c\n"})
	w.awaitReady(ground.name, "False Invalid")
	waits := r.commit("waits", map[string]string{"broken.yaml": "", "more.yaml": r.configMap("more", "1")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(sourceMessage(l), waits) && strings.HasPrefix(readyText(l), "False ApplyFailed")
	})
	r.git("reset", "-q", "--hard", half)
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(sourceMessage(l), half) })
	w.createMissingNamespace()
	ground.commit("mended", map[string]string{"broken.yaml": ""})
	w.awaitReady(r.name, "True Applied: main@sha1:"+half)
}

// TestGitWindowsSurviveRestart: the windows of the applied landscape.yaml count before
// anything is read.
func TestGitWindowsSurviveRestart(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("gitwindows-" + w.namespace)
	r.commit("a window", map[string]string{"landscape.yaml": r.landscapeFile("  windows:\n  - {schedule: \"0 0 29 2 *\", duration: 1m}\n")})
	stop := w.startOperator()
	w.createLandscape(r.name, r)
	w.awaitReady(r.name, "True Applied")
	stop()
	waits := r.commit("waits", map[string]string{"a.yaml": r.configMap("a", "2")})
	w.startOperator()
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), "waiting for the next window") && strings.Contains(sourceMessage(l), waits)
	})
	assert.Equal(t, "1", w.configMapValue("a"))
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Pin = &landscapev1alpha1.Pin{Revision: waits} })
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), "PINNED") })
	assert.Equal(t, "1", w.configMapValue("a"), "a pin waits, too")
}

// TestRevertDeletesPartialObjectsReviewed: a revert deletes the objects of a partial commit without
// an approval. It may fail at first, or come while no operator runs. A review counts once for
// seeds, too.
func TestRevertDeletesPartialObjectsReviewed(t *testing.T) {
	back := map[string]string{"x.yaml": ""}
	for name, revert := range map[string]func(w *testEnv, r *testRepository, stop func()) string{
		"it fails at first": func(w *testEnv, r *testRepository, _ func()) string {
			commit := r.commit("back", back)
			w.awaitFailed(r.name, commit)
			w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.NextSync != nil })
			w.createMissingNamespace()
			return commit
		},
		"over a restart": func(w *testEnv, r *testRepository, stop func()) string {
			stop()
			commit := r.commit("back", back)
			w.createMissingNamespace()
			w.startOperator()
			return commit
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			r := w.newRepository("back-" + w.namespace)
			stop := w.startOperator()
			w.createLandscape(r.name, r, requireReview)
			w.awaitReady(r.name, "True Applied")
			w.awaitFailed(r.name, r.commit("fails halfway", map[string]string{"x.yaml": r.configMap("x", "1"), "refused.yaml": r.rejectedConfigMap()}))
			require.Equal(t, "1", w.configMapValue("x"))
			commit := revert(w, r, stop)
			w.awaitReady(r.name, "True Applied: main@sha1:"+commit)
			w.eventually("it is gone", func() bool { return w.configMapUID("x") == "" })
			assert.Empty(t, w.getLandscape(r.name).Status.Held)
		})
	}
}

// TestReviewCountsOnceAcrossRetries: retries of a commit share one review, which allows a
// recreation once.
func TestReviewCountsOnceAcrossRetries(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("tries-" + w.namespace)
	r.commit("r", map[string]string{"r.yaml": r.recreatableConfigMap("r", "1") + "immutable: true\n"})
	w.startOperator()
	w.createLandscape(r.name, r, requireReview)
	w.awaitReady(r.name, "True Applied")
	w.awaitFailed(r.name, r.commit("fails", map[string]string{"refused.yaml": r.rejectedConfigMap()}))
	w.awaitFailed(r.name, r.commit("recreates", map[string]string{"r.yaml": r.recreatableConfigMap("r", "2") + "immutable: true\n"}))
	w.eventually("it is made anew", func() bool { return w.configMapValue("r") == "2" })
	// Meanwhile someone replaces the object.
	w.suspend(r.name, true)
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), "Suspended") })
	cm := &corev1.ConfigMap{}
	require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "r"}, cm))
	require.NoError(t, w.client.Delete(context.Background(), cm))
	cm.ResourceVersion, cm.UID, cm.ManagedFields, cm.Data["value"] = "", "", nil, "by hand"
	w.create(cm)
	byHand := w.configMapUID("r")
	w.suspend(r.name, false)
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return len(l.Status.Held) == 1 && l.Status.Held[0].Object == "ConfigMap "+w.namespace+"/r"
	})
	assert.Equal(t, byHand, w.configMapUID("r"))
}

// TestSeedReviewIsCompletedByRetry: the review of a seed in a commit's first try ends when a
// later try completes.
func TestSeedReviewIsCompletedByRetry(t *testing.T) {
	w := newTestEnv(t)
	w.Cleanup(func() {
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.SeedNamespace("local")))
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
	s := w.newShootLandscape("tries", files)
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), requireReview)
	w.awaitApplied(s, "", "1")
	two := more("m1", "m2")
	two["refused.yaml"] = s.rejectedConfigMap()
	w.awaitFailed(s.name, s.push("one more", two))
	back := s.push("it goes again", more("m1"))
	w.awaitFailed(s.name, back)
	w.createMissingNamespace()
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, back)
	})
	w.eventually("it is completed", func() bool {
		m := w.seedConfigMap(seedpublication.ReviewName)
		return m != nil && m.Data["number"] != "" && m.Data["number"] == m.Data["complete"] && strings.Contains(m.Data["seen"], "m2")
	})
}

// sourceMessage returns the message of the condition SourceReady.
func sourceMessage(l *landscapev1alpha1.Landscape) string {
	for _, c := range l.Status.Conditions {
		if c.Type == landscapev1alpha1.LandscapeSourceReady {
			return c.Message
		}
	}
	return ""
}
