// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// Reasons of the condition Ready that are also read outside of the operator.
const (
	// ReasonSuspended means that syncing is paused on request.
	ReasonSuspended = "Suspended"
	// ReasonWaiting means that a sync is due and waits for a window or for another Landscape, which
	// the message names. The previous revision stays applied.
	ReasonWaiting = "Waiting"
	// ReasonApplyFailed means that the last sync failed.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonNameTaken means that another Landscape of the same name is synced.
	ReasonNameTaken = "NameTaken"
)

// MaxHeldDeletions is the maximum number of entries in `status.held`.
const MaxHeldDeletions = 50

// SuspensionAt returns the suspension in force at a time. It returns nil if there is none or it has
// expired, and a suspension without reason if only `spec.suspend` is set.
func (s *LandscapeSpec) SuspensionAt(now time.Time) *Suspension {
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
