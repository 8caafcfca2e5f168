// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestUnconfirmedShootRemovalIsHeld: a commit that only removes a Shoot's file is held, and its
// other changes are applied.
func TestUnconfirmedShootRemovalIsHeld(t *testing.T) {
	w := newTestEnv(t)
	s := w.newShootLandscape("removal", nil)
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Interval = &metav1.Duration{Duration: time.Second}
	})
	w.awaitApplied(s, "", "1")
	uid := w.getShoot().GetUID()

	s.git("rm", "-q", "shoot.yaml")
	commit := s.pushValue("2")
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		h := l.Status.History
		return len(h) > 0 && h[0].EndTime != nil && strings.HasSuffix(h[0].Revision, commit)
	})
	assert.Equal(t, landscapev1alpha1.SyncHeld, l.Status.History[0].Result, l.Status.History[0].Message)
	require.Len(t, l.Status.Held, 1)
	assert.Contains(t, l.Status.Held[0].Object, "Shoot garden-local/local")
	assert.Contains(t, l.Status.Held[0].Reason, "put the file back")
	assert.Equal(t, "2", w.configMapValue(s.name))
	assert.Equal(t, uid, w.getShoot().GetUID())

	const stuck = "this version cannot delete a Shoot"
	assert.Contains(t, l.Status.Held[0].Reason, stuck)
	assert.Empty(t, l.Status.Held[0].Approval, "no approval leads anywhere")
	w.awaitReady(s.name, "True Applied: ")
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), stuck) })
	assert.Contains(t, l.Status.History[0].Message, stuck)
	assert.Equal(t, uid, w.getShoot().GetUID())
}

// TestPendingOperationsAreReported: pending operations are reported, the rest is applied.
func TestPendingOperationsAreReported(t *testing.T) {
	w := newTestEnv(t)
	operation := func(name string) string {
		return "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec: {object: Shoot garden-local/local, operation: " + name + "}\n"
	}
	s := w.newShootLandscape("operations", map[string]string{"operations/a.yaml": operation("rotate-ssh-keypair"), "operations/b.yaml": operation("maintain")})
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	// The first sync reports it, because the next one is far away.
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	w.awaitApplied(s, "", "1")
	w.awaitReady(s.name, "True Applied: ")
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), "2 operations wait to be started")
	})
	waiting := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeOperationsWaiting)
	require.NotNil(t, waiting)
	for _, part := range []string{"operation a, rotate-ssh-keypair on Shoot garden-local/local: it was requested", "operation b, maintain on Shoot garden-local/local: operation a, rotate-ssh-keypair, on the same object was requested",
		"kubectl annotate shoot -n garden-local local gardener.cloud/operation-"} {
		assert.Contains(t, waiting.Message, part)
	}
	h := l.Status.History
	assert.Contains(t, h[len(h)-1].Message, "no part of Pergola implements it in this version", "whoever has pushed it hears of it")
	w.eventually("it is told", func() bool { return w.hasEvent(s.name, reasonOperationsPending) })
	for _, note := range w.eventTexts(s.name, reasonOperationsPending) {
		assert.NotContains(t, note, "kubectl", "who reads an Event may use another cluster")
		assert.Contains(t, note, "; to withdraw it, remove its annotation gardener.cloud/operation")
	}
	w.awaitApplied(s, s.pushValue("2"), "2")
	assert.Equal(t, waiting.Message, condition.Get(w.awaitReady(s.name, "True Applied: ").Status.Conditions, landscapev1alpha1.LandscapeOperationsWaiting).Message, "it is so as long as they wait")

	// An expired operation is not pending.
	s.push("late", map[string]string{"operations/a.yaml": "", "operations/b.yaml": "",
		"operations/c.yaml": strings.Replace(operation("reconcile"), "}\n", ", notAfter: 2001-01-01T00:00:00Z}\n", 1)})
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), "1 operation expired and never runs")
	})
	assert.NotContains(t, readyText(l), "to be started")
	waiting = condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeOperationsWaiting)
	require.NotNil(t, waiting)
	assert.Equal(t, reasonOperationsExpired, waiting.Reason)
	assert.Equal(t, "operation c, reconcile on Shoot garden-local/local, has expired and is never executed: it expired (notAfter 2001-01-01T00:00:00Z) before it could be executed; "+
		"remove its file, and add one with another name if it is still needed", waiting.Message)
	w.eventually("it is told as that", func() bool { return w.hasEvent(s.name, reasonOperationsExpired) })
}
