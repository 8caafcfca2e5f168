// SPDX-License-Identifier: Apache-2.0

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

// TestRestartWithMisconfiguredObject: an error in the object is reported with its field and blocks
// new revisions. The applied revision is still maintained, also after a restart.
func TestRestartWithMisconfiguredObject(t *testing.T) {
	w := newTestEnv(t)
	stop := w.startOperator()
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
		"circle": {says: "spec.dependsOn has a cycle: "},
	}
	all := map[string]*servedRepository{}
	for name, test := range tests {
		s := w.newServedRepository(name)
		all[name] = s
		if name == "circle" {
			test.wrong = func(spec *landscapev1alpha1.LandscapeSpec) {
				spec.DependsOn = []landscapev1alpha1.Dependency{{Name: s.name}}
			}
			tests[name] = test
		}
		w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	}
	applied := map[string]string{}
	for name, s := range all {
		applied[name] = w.awaitApplied(s, "", "1").Status.LastAppliedRevision
	}
	wrong := func(name string) {
		t.Helper()
		l := w.awaitLandscape(all[name].name, func(l *landscapev1alpha1.Landscape) bool {
			return hasStalled(l) && l.Status.ObservedGeneration == l.Generation && condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReconciling) == nil
		})
		assert.Contains(t, readyText(l), tests[name].says)
		assert.Contains(t, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled).Message, tests[name].says)
	}
	for name, test := range tests {
		w.changeLandscape(all[name].name, func(l *landscapev1alpha1.Landscape) { test.wrong(&l.Spec) })
		wrong(name)
		w.awaitRepaired(all[name], "1")
	}
	w.restartOperator(&stop)
	next := map[string]string{}
	for name, s := range all {
		wrong(name)
		if tests[name].unkept {
			w.eventually("it is told", func() bool { return w.hasEvent(s.name, reasonNotMaintained) })
			l := w.awaitReady(s.name, "False Stalled: spec.source is not set")
			assert.Contains(t, readyText(l), applied[name]+" was applied last and is not maintained")
			continue
		}
		w.awaitRepaired(s, "1")
		w.awaitReady(s.name, "False ")
		assert.Contains(t, readyText(w.getLandscape(s.name)), applied[name]+" stays applied")
		next[name] = s.pushValue("2")
	}
	// Another change of the object makes a new sync due, still of the applied revision.
	for name := range next {
		w.changeLandscape(all[name].name, func(l *landscapev1alpha1.Landscape) { l.Spec.ForceConflicts = true })
		wrong(name)
		w.awaitRepaired(all[name], "1")
		assert.Equal(t, applied[name], w.getLandscape(all[name].name).Status.LastAppliedRevision)
	}
	for name, commit := range next {
		l := w.getLandscape(all[name].name)
		before := l.DeepCopy()
		l.Spec.Windows, l.Spec.DependsOn, l.Spec.Source.Ref = nil, nil, nil
		require.NoError(t, w.client.Patch(context.Background(), l, client.MergeFrom(before)))
		w.awaitApplied(all[name], commit, "2")
	}
}
