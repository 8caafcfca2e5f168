// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// TestReviewedDeletionHappensLater: a reviewed deletion waits for another Landscape. It happens
// once that one is synced, even after another commit or a restart.
func TestReviewedDeletionHappensLater(t *testing.T) {
	reviewed := func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired }
	for name, meanwhile := range map[string]func(w *testEnv, one *testRepository, restart func()){
		"commit": func(w *testEnv, one *testRepository, _ func()) {
			one.commit("other", map[string]string{"a.yaml": one.configMap("a", "2")})
			w.eventually("it is synced", func() bool { return w.configMapValue("a") == "2" })
		},
		"restart": func(_ *testEnv, _ *testRepository, restart func()) { restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			one, two := w.newRepository("gone-"+name), w.newRepository("asked-"+name)
			one.commit("x", map[string]string{"x.yaml": one.configMap("x", "1")})
			two.commit("not a", map[string]string{"a.yaml": "", "z.yaml": two.configMap("z", "1")})
			stop := w.startOperator()
			w.createLandscape(one.name, one, reviewed)
			w.createLandscape(two.name, two, reviewed)
			w.awaitReady(one.name, "True Applied: ")
			w.awaitReady(two.name, "True Applied: ")
			w.suspend(two.name, true)
			one.commit("less", map[string]string{"x.yaml": ""})
			held := w.awaitLandscape(one.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 }).Status.Held[0]
			assert.Contains(t, held.Reason, "it is deleted once these are synced and do not declare it: "+two.name)
			meanwhile(w, one, func() {
				stop()
				w.startOperator()
				w.awaitReady(one.name, "True Applied: ")
			})
			assert.Equal(t, "1", w.configMapValue("x"))
			two.commit("more", map[string]string{"z.yaml": two.configMap("z", "2")})
			w.suspend(two.name, false)
			w.eventually("the other one", func() bool { return w.configMapValue("z") == "2" })
			w.awaitReady(two.name, "True Applied: ")
			w.changeLandscape(one.name, func(l *landscapev1alpha1.Landscape) {
				l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
			})
			w.eventually("it goes", func() bool { return w.configMapValue("x") == "" })
			w.awaitLandscape(one.name, func(l *landscapev1alpha1.Landscape) bool {
				return len(l.Status.Held) == 0 && !strings.Contains(readyText(l), "waits for an approval")
			})
		})
	}
}
