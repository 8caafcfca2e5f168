package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestRestartWithWrongObject: an error in the object is reported with its field and blocks new
// revisions. The applied revision is still maintained, also after a restart.
func TestRestartWithWrongObject(t *testing.T) {
	w := newWorld(t)
	stop := w.start()
	tests := map[string]struct {
		wrong  func(*landscapev1alpha1.LandscapeSpec)
		says   string
		unkept bool
	}{
		"windows": {wrong: func(s *landscapev1alpha1.LandscapeSpec) {
			s.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "61 * * * *", Duration: metav1.Duration{Duration: time.Hour}}}
		}, says: "spec.windows[0]: schedule"},
		"zone": {wrong: func(s *landscapev1alpha1.LandscapeSpec) {
			s.Windows = []landscapev1alpha1.SyncWindow{{Schedule: "1 * * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Nowhere"}}
		}, says: "spec.windows[0]: timeZone"},
		"ref": {wrong: func(s *landscapev1alpha1.LandscapeSpec) {
			s.Source.Ref = &landscapev1alpha1.Reference{SemVer: "newest please"}
		}, says: "spec.source.ref.semver"},
		"source": {wrong: func(s *landscapev1alpha1.LandscapeSpec) { s.Source = nil }, says: "spec.source is not set", unkept: true},
		"circle": {says: "spec.dependsOn is a circle"},
	}
	all := map[string]*served{}
	for name, test := range tests {
		s := w.served(name)
		all[name] = s
		if name == "circle" {
			test.wrong = func(spec *landscapev1alpha1.LandscapeSpec) {
				spec.DependsOn = []landscapev1alpha1.Dependency{{Name: s.name}}
			}
			tests[name] = test
		}
		w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL))
	}
	applied := map[string]string{}
	for name, s := range all {
		applied[name] = w.applied(s, "", "1").Status.LastAppliedRevision
	}
	wrong := func(name string) {
		t.Helper()
		l := w.await(all[name].name, func(l *landscapev1alpha1.Landscape) bool {
			return hasStalled(l) && l.Status.ObservedGeneration == l.Generation && condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling) == nil
		})
		assert.Contains(t, readiness(l), tests[name].says)
		assert.Contains(t, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled).Message, tests[name].says)
	}
	for name, test := range tests {
		w.change(all[name].name, func(l *landscapev1alpha1.Landscape) { test.wrong(&l.Spec) })
		wrong(name)
		w.repaired(all[name], "1")
	}
	w.restarted(&stop)
	next := map[string]string{}
	for name, s := range all {
		wrong(name)
		if tests[name].unkept {
			w.eventually("it is told", func() bool { return w.told(s.name, reasonNotKept) })
			l := w.ready(s.name, "False Stalled: spec.source is not set")
			assert.Contains(t, readiness(l), applied[name]+" was applied last, and nothing keeps it")
			continue
		}
		w.repaired(s, "1")
		w.ready(s.name, "False ")
		assert.Contains(t, readiness(w.get(s.name)), applied[name]+" stays applied")
		next[name] = s.set("2")
	}
	// Another change of the object makes a new sync due, still of the applied revision.
	for name := range next {
		w.change(all[name].name, func(l *landscapev1alpha1.Landscape) { l.Spec.ForceConflicts = true })
		wrong(name)
		w.repaired(all[name], "1")
		assert.Equal(t, applied[name], w.get(all[name].name).Status.LastAppliedRevision)
	}
	for name, commit := range next {
		l := w.get(all[name].name)
		before := l.DeepCopy()
		l.Spec.Windows, l.Spec.DependsOn, l.Spec.Source.Ref = nil, nil, nil
		require.NoError(t, w.client.Patch(context.Background(), l, client.MergeFrom(before)))
		w.applied(all[name], commit, "2")
	}
}
