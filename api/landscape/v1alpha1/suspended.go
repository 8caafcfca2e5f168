package v1alpha1

import "time"

// Reasons of the condition Ready that others than the operator look at.
const (
	// ReasonSuspended says that nothing is done, because somebody asked for that.
	ReasonSuspended = "Suspended"
	// ReasonWaiting says that a sync is due and waits for a window or for another Landscape; the message says for which. What was applied
	// before is in force.
	ReasonWaiting = "Waiting"
	// ReasonApplyFailed says that the last sync failed.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonNameTaken says that another Landscape of the same name is synced.
	ReasonNameTaken = "NameTaken"
)

// MaximumHeld is how many held deletions and recreations `status.held` has.
const MaximumHeld = 50

// SuspendedAt gives the suspension that is in force at a time: nil for none, or when it has run out; one without reason where only
// `spec.suspend` is set.
func (s *LandscapeSpec) SuspendedAt(now time.Time) *Suspension {
	switch why := s.Suspension; {
	case !s.Suspend:
		return nil
	case why == nil:
		return &Suspension{}
	case why.Until != nil && !now.Before(why.Until.Time):
		return nil
	default:
		return why
	}
}
