package operator

import (
	"fmt"
	"slices"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// tellWaiting ends the followers of a sync that cannot start now.
func (s *syncer) tellWaiting(suspended string) {
	wanted, _ := s.wanted()
	switch {
	case suspended != "":
		s.hub.tellAll(receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseHeld, Message: suspendedText(suspended, s.key.String()), Done: true})
	case s.faults.misconfigured != "": // only a change of the object helps
		s.hub.tellAll(receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseFailed, Err: s.faults.misconfigured + s.staysApplied(), Done: true})
	case s.jobs.decided.waiting != "" && wanted != "" && s.examining():
		// The result of the examination is more useful.
	case s.jobs.decided.waiting != "" && wanted != "" && s.jobs.last.commitAt == s.stated(wanted) && s.jobs.last.validErr != nil:
		if s.asks.answering {
			return // the source may have a better one
		}
		s.hub.tell(wanted, receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseFailed, Err: s.jobs.last.validErr.Error() + s.staysApplied(), Done: true})
	case s.jobs.decided.waiting != "" && wanted != "":
		s.hub.tellAll(receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseHeld, Message: s.revisionOf(wanted) + ": " + s.jobs.decided.waiting, Done: true})
	case s.object.Spec.Pin != nil:
		pin := s.object.Spec.Pin
		s.hub.others(pin.Revision, receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseHeld, Done: true,
			Message: pinnedText(pin, s.key.String())})
	}
}

// pinnedText explains the pin to followers of other revisions.
func pinnedText(pin *landscapev1alpha1.Pin, landscape string) string {
	return view{is: revisionsShown{pin: pin}}.pinned() + "nothing else is applied before it is taken off (pergola rollback " + landscape + " --unpin)"
}

// suspendedText explains the suspension to followers of a sync.
func suspendedText(suspended, landscape string) string {
	return "nothing is applied, because the Landscape is " + suspended + "; to go on: pergola resume " + landscape
}

// report updates the status.
func (s *syncer) report(suspended string) {
	s.tellWaiting(suspended)
	s.tellMisfits()
	v := view{
		object: objectShown{missing: s.faults.toldMissing, misconfigured: s.faults.misconfigured, nameTaken: s.faults.misconfigured != "" && s.faults.nameTaken, suspended: suspended},
		now:    goingOn{asking: s.asks.asking, waiting: s.jobs.decided.waiting},
		is:     revisionsShown{attempted: s.named(s.jobs.last.revision, s.jobs.last.folder), applied: s.appliedName(), pin: s.object.Spec.Pin}, read: readShown{sourceErr: s.origin.pollFailed, validErr: s.jobs.last.validErr}, last: lastShown{problems: s.jobs.last.problems, permanent: s.jobs.last.permanent}, withheld: withheld{held: s.jobs.last.open.held + len(s.found.heldDrift) + len(s.found.onSeeds), heldText: s.heldText(), heldWaiting: s.jobs.last.open.waits + waitingForApproval(s.found.heldDrift) + waitingForApproval(s.found.onSeeds), operations: s.jobs.last.open.operations, ranOut: s.jobs.last.open.ranOut},
	}
	if v.read.sourceErr == nil {
		v.read.sourceErr = s.jobs.last.fetchErr
	}
	// Other Landscapes wait for this one to be ready, so the result of an earlier process counts
	// until this one has its own.
	ready := condition.Get(s.status.now.Conditions, landscapev1alpha1.LandscapeReady)
	s.settles()
	v.now.unsettled = !s.jobs.settled && ready != nil && ready.Status != gardencorev1beta1.ConditionTrue
	v.last.unkept = s.notKeptNow()
	if s.origin.head.Commit != "" {
		v.is.wanted = s.origin.head.Revision()
	}
	if v.is.pin != nil {
		if s.origin.head.Commit != v.is.pin.Revision {
			v.is.newer = v.is.wanted
		}
		v.is.wanted = v.is.pin.Revision
	}
	attempted := s.jobs.last.revision
	if v.is.attempted == "" {
		v.is.attempted, attempted = v.is.applied, s.status.now.LastAppliedRevision
	}
	unread := s.jobs.last.fetchErr != nil
	if s.jobs.active != nil {
		v.last.notes = slices.Clone(s.jobs.active.revision.notes)
		if failed := &s.jobs.active.tries; failed.failures > 0 && !s.jobs.active.applying && s.jobs.last.commitAt != s.jobs.active.revision.at() {
			v.last.notes = append(v.last.notes, fmt.Sprintf("%s is tried again: %s", s.named(s.jobs.active.revision.Revision(), s.jobs.active.revision.folder), listed(failed.problems)))
		}
		if s.jobs.active.applying {
			v.now.syncing, v.now.applying = s.jobs.active.progress(), true
			attempted = s.jobs.active.revision.Revision()
			v.is.attempted = s.named(attempted, s.jobs.active.revision.folder)
			unread = unread && s.jobs.last.commitAt == s.jobs.active.revision.at()
		}
	}
	v.read.unread = unread
	if s.jobs.preparing != nil && !s.jobs.preparing.purpose.isFormer() {
		v.now.syncing, v.now.applying = "reading "+s.jobs.preparing.commit, false
		if appliedAt(&s.status.now) != s.jobs.preparing.commitAt {
			attempted, v.read.reading = s.revisionOf(s.jobs.preparing.commit), true
			v.is.attempted = s.named(attempted, s.jobs.preparing.folder)
		}
	}
	if s.examining() {
		v.now.validating = "validating " + s.jobs.examined.commit + ", which waits"
	}
	if v.now.syncing == "" {
		v.is.halfway = s.halfwayName()
	}
	// Deletions that an earlier sync held stay held until another sync reports otherwise.
	if before := len(heldHere(s.status.now.Held)) - len(s.found.heldDrift); s.jobs.last.open.held == 0 && before > 0 {
		v.withheld.heldWaiting += waitingForApproval(heldHere(s.status.now.Held)) - waitingForApproval(s.found.heldDrift)
		v.withheld.held, v.withheld.heldText = v.withheld.held+before, joined(fmt.Sprintf("deletions and recreations that a former sync has held wait for an approval: %d", before), v.withheld.heldText)
	}
	if s.found.gardenlets != nil {
		v.now.gardenlets = s.found.gardenlets.text
	}
	v.last.notes = slices.Concat(v.last.notes, s.parts.untold(s.key))
	v.found.drift = s.found.drift
	for _, lines := range s.found.unhealthy {
		v.found.unhealthy = append(v.found.unhealthy, lines...)
	}
	s.status.set(v, attempted, s.object.Generation)
	s.status.next(s.retryAt())
	s.parts.metrics.state(s.key, s.status.now, suspended != "")
}

// settles notes that the source's revision has a verdict: it was attempted, or it waits and was
// validated. Maintaining the applied revision does not count.
func (s *syncer) settles() {
	wanted, _ := s.wanted()
	e := s.jobs.examined
	s.jobs.settled = s.jobs.settled || wanted != "" && (s.jobs.last.commitAt == s.stated(wanted) || e != nil && e.done && e.again.IsZero() && e.commitAt == s.stated(wanted))
}

// retryAt returns when a failed or waiting sync is retried; zero if there is none.
func (s *syncer) retryAt() time.Time {
	if s.jobs.decided.waiting != "" || s.jobs.decided.trigger == "" && s.jobs.last.failures > 0 && !s.jobs.last.permanent {
		return s.jobs.decided.at
	}
	return time.Time{}
}

// earliest returns the earlier of two times; a zero time does not count.
func earliest(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	}
	return b
}

// sourceReason returns why a source cannot be read, for conditions and events.
func sourceReason(err error) string {
	if r := source.ReasonOf(err); r != "" {
		return string(r)
	}
	return reasonSourceNotReady
}
