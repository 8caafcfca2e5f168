// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/receiver"
)

// missingDependencies lists the Landscapes of spec.hasDependency that do not exist; it is empty if
// all exist. They block newer revisions, which is invisible until there is one.
func (s *landscapeReconciler) missingDependencies() string {
	var names []string
	for _, d := range s.object.Spec.DependsOn {
		if other, err := s.operator.landscapeOf(receiver.Key{Namespace: s.object.Namespace, Name: d.Name}); err == nil && other == nil {
			names = append(names, d.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Landscape %s of spec.dependsOn does not exist: no newer revision is applied until it exists", names[0])
	}
	return fmt.Sprintf("Landscapes %s of spec.dependsOn do not exist: no newer revision is applied until they exist", joinWithLimit(names))
}

// reportObjectFaults emits one event for each error in the object and for each missing dependency.
func (s *landscapeReconciler) reportObjectFaults() {
	missing := s.missingDependencies()
	for _, one := range []struct{ text, told, reason string }{{missing, s.faults.reportedMissing, reasonDependencyMissing}, {s.faults.misconfiguration, s.faults.reportedMisconfigured, reasonStalled}} {
		if one.text != "" && one.text != one.told {
			s.notify(notification.Neutral, notification.Warning, one.reason, one.text, commitOf(s.status.desired.LastAppliedRevision), s.status.desired.LastAppliedRevision)
		}
	}
	s.faults.reportedMissing, s.faults.reportedMisconfigured = missing, s.faults.misconfiguration
}

// isWaitingForMovesFrom reports whether a Landscape failed only because others, including the named
// one, still have objects that moved to it. The named one must not wait for it then, or neither
// proceeds. After a restart the Landscape has to try once before this is known.
func (p *runningOperator) isWaitingForMovesFrom(l *landscapev1alpha1.Landscape, name string) bool {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	if ready == nil || ready.Status != gardencorev1beta1.ConditionFalse || ready.Reason != reasonApplyFailed {
		return false // earlier problems do not count
	}
	p.mu.Lock()
	other := p.reconcilers[receiver.Key{Namespace: l.Namespace, Name: l.Name}]
	p.mu.Unlock()
	if other == nil {
		return false
	}
	names := other.reconciler.jobs.moveSources.Load()
	return names != nil && slices.Contains(*names, name)
}
