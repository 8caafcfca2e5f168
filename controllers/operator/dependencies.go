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

// missing says which Landscapes of spec.dependsOn do not exist: nothing newer is applied before
// they do, which nobody would see as long as there is nothing newer. Empty when all are there.
func (s *syncer) missing() string {
	var names []string
	for _, d := range s.object.Spec.DependsOn {
		if other, err := s.parts.landscapeOf(receiver.Key{Namespace: s.object.Namespace, Name: d.Name}); err == nil && other == nil {
			names = append(names, d.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Landscape %s of spec.dependsOn does not exist: nothing newer is applied before it does", names[0])
	}
	return fmt.Sprintf("Landscapes %s of spec.dependsOn do not exist: nothing newer is applied before they do", listed(names))
}

// tellMisfits tells once, as an event, what is wrong with the object, and which Landscapes it
// refers to in vain.
func (s *syncer) tellMisfits() {
	missing := s.missing()
	for _, one := range []struct{ text, told, reason string }{{missing, s.faults.toldMissing, reasonMissing}, {s.faults.misconfigured, s.faults.toldMisconfigured, reasonStalled}} {
		if one.text != "" && one.text != one.told {
			s.notify(notification.Neutral, notification.Warning, one.reason, one.text, commitOf(s.status.now.LastAppliedRevision), s.status.now.LastAppliedRevision)
		}
	}
	s.faults.toldMissing, s.faults.toldMisconfigured = missing, s.faults.misconfigured
}

// waitsFor tells whether a Landscape failed for nothing else than that others have objects that
// moved to it, of which one is this: should that one wait for it, too, neither would ever go on.
// The syncer of a process that began anew knows it when it has tried.
func (p *parts) waitsFor(l *landscapev1alpha1.Landscape, name string) bool {
	ready := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	if ready == nil || ready.Status != gardencorev1beta1.ConditionFalse || ready.Reason != reasonApplyFailed {
		return false // what it met before says nothing of now
	}
	p.mu.Lock()
	other := p.syncers[receiver.Key{Namespace: l.Namespace, Name: l.Name}]
	p.mu.Unlock()
	if other == nil {
		return false
	}
	names := other.syncer.jobs.movesFrom.Load()
	return names != nil && slices.Contains(*names, name)
}
