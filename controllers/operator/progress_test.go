// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/source"
)

// TestStoppedStepIsNotReportedAsFailed: followers learn that a revision is superseded, not that
// each step failed.
func TestStoppedStepIsNotReportedAsFailed(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	s := &landscapeReconciler{broadcaster: &progressBroadcaster{}, lifetime: lifetime{ctx: over}, callbacks: make(chan func())}
	j := &job{revision: &revision{Snapshot: &source.Snapshot{Head: source.Head{Commit: "a"}}}}
	lines := s.broadcaster.follow(t.Context(), "")
	failed := owner.Event{Owner: "Garden local", Node: "etcd", State: flow.Failed, Error: "Canceled: interrupted before it was done"}
	s.reportStep(j, &reportedSteps{}, failed)
	assert.Equal(t, "Garden local › etcd: failed: Canceled: interrupted before it was done", (<-lines).Message)
	j.control.isStopped.Store(true)
	s.reportStep(j, &reportedSteps{}, failed)
	assert.Empty(t, lines)
}

// TestDeclarationProgress: many declarations yield a line every few seconds, few yield none.
func TestDeclarationProgress(t *testing.T) {
	var d declarationProgress
	totals := func() map[string]int { return map[string]int{"runtime": 1, "virtual": 40} }
	run := func() (lines []string) {
		now := time.Unix(0, 0)
		d.reset()
		lines = append(lines, d.countObject(now, "runtime", totals))
		for range 45 { // five of them are deletions
			now = now.Add(time.Second / 4)
			lines = append(lines, d.countObject(now, "virtual", totals))
		}
		return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	}
	for range 2 {
		assert.Equal(t, []string{"declarations of cluster virtual: 20 of 40", "declarations of cluster virtual: 40 of 40"}, run())
	}
}

// TestDestinationErrorsAreInStatus: an unusable destination is in the status, and not only in the
// log.
func TestDestinationErrorsAreInStatus(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("untold")
	w.createSecret("forge", map[string]string{"token": "x"})
	w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Notifications = []landscapev1alpha1.Notification{{Name: "forge", Type: landscapev1alpha1.NotifyCommitStatus, Provider: "gitea",
			SecretRef: &landscapev1alpha1.LocalSecretReference{Name: "forge"}}}
	})
	w.awaitReady(r.name, "True Applied")
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "True Applied") &&
			strings.Contains(readyText(l), `spec.notifications: notification "forge": a commit status cannot be set: the URL of the source names no host`)
	})
}
