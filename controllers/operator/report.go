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

// tellWaiting ends those who follow a sync that does not begin before somebody or something lets it.
func (s *syncer) tellWaiting(suspended string) {
	wanted, _ := s.wanted()
	switch {
	case suspended != "":
		s.hub.tellAll(receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseHeld, Message: suspendedText(suspended, s.key.String()), Done: true})
	case s.misconfigured != "": // nothing but a change of the object makes it go on
		s.hub.tellAll(receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseFailed, Err: s.misconfigured + s.staysApplied(), Done: true})
	case s.decided.waiting != "" && wanted != "" && s.examining(): // what is wrong with it is of more interest
	case s.decided.waiting != "" && wanted != "" && s.last.commitAt == s.stated(wanted) && s.last.validErr != nil:
		if s.answering {
			return // the source may have a better one
		}
		s.hub.tell(wanted, receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseFailed, Err: s.last.validErr.Error() + s.staysApplied(), Done: true})
	case s.decided.waiting != "" && wanted != "":
		s.hub.tellAll(receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseHeld, Message: s.revisionOf(wanted) + ": " + s.decided.waiting, Done: true})
	case s.object.Spec.Pin != nil:
		pin := s.object.Spec.Pin
		s.hub.others(pin.Revision, receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseHeld, Done: true,
			Message: pinnedText(pin, s.key.String())})
	}
}

// pinnedText says to those who follow another revision than the pin's that it is not applied.
func pinnedText(pin *landscapev1alpha1.Pin, landscape string) string {
	return view{pin: pin}.pinned() + "nothing else is applied before it is taken off (pergola rollback " + landscape + " --unpin)"
}

// suspendedText says to those who follow a sync that it does not begin.
func suspendedText(suspended, landscape string) string {
	return "nothing is applied, because the Landscape is " + suspended + "; to go on: pergola resume " + landscape
}

// report puts everything into the status.
func (s *syncer) report(suspended string) {
	s.tellWaiting(suspended)
	s.tellMisfits()
	v := view{
		missing:   s.toldMissing,
		asking:    s.asking,
		attempted: s.named(s.last.revision, s.last.folder), applied: s.appliedName(), misconfigured: s.misconfigured, nameTaken: s.misconfigured != "" && s.nameTaken, sourceErr: s.pollFailed,
		validErr: s.last.validErr, problems: s.last.problems, permanent: s.last.permanent, held: s.last.held + len(s.heldDrift) + len(s.onSeeds), heldText: s.heldText(), heldWaiting: s.last.waits + waitingForApproval(s.heldDrift) + waitingForApproval(s.onSeeds), operations: s.last.operations, ranOut: s.last.ranOut,
		waiting: s.decided.waiting, suspended: suspended, pin: s.object.Spec.Pin,
	}
	if v.sourceErr == nil {
		v.sourceErr = s.last.fetchErr
	}
	// What a former process found is true until this one knows better: others wait for this Landscape to be ready.
	ready := condition.Get(s.status.now.Conditions, landscapev1alpha1.LandscapeReady)
	s.settles()
	v.unsettled = !s.settled && ready != nil && ready.Status != gardencorev1beta1.ConditionTrue
	v.unkept = s.notKeptNow()
	if s.head.Commit != "" {
		v.wanted = s.head.Revision()
	}
	if v.pin != nil {
		if s.head.Commit != v.pin.Revision {
			v.newer = v.wanted
		}
		v.wanted = v.pin.Revision
	}
	attempted := s.last.revision
	if v.attempted == "" {
		v.attempted, attempted = v.applied, s.status.now.LastAppliedRevision
	}
	unread := s.last.fetchErr != nil
	if s.active != nil {
		v.notes = slices.Clone(s.active.revision.notes)
		if failed := &s.active.tries; failed.failures > 0 && !s.active.applying && s.last.commitAt != s.active.revision.at() {
			v.notes = append(v.notes, fmt.Sprintf("%s is tried again: %s", s.named(s.active.revision.Revision(), s.active.revision.folder), listed(failed.problems)))
		}
		if s.active.applying {
			v.syncing, v.applying = s.active.progress(), true
			attempted = s.active.revision.Revision()
			v.attempted = s.named(attempted, s.active.revision.folder)
			unread = unread && s.last.commitAt == s.active.revision.at()
		}
	}
	v.unread = unread
	if s.preparing != nil && !s.preparing.purpose.isFormer() {
		v.syncing, v.applying = "reading "+s.preparing.commit, false
		if appliedAt(&s.status.now) != s.preparing.commitAt {
			attempted, v.reading = s.revisionOf(s.preparing.commit), true
			v.attempted = s.named(attempted, s.preparing.folder)
		}
	}
	if s.examining() {
		v.validating = "validating " + s.examined.commit + ", which waits"
	}
	if v.syncing == "" {
		v.halfway = s.halfwayName()
	}
	// What a sync has held is held as long as no other one says otherwise.
	if before := len(heldHere(s.status.now.Held)) - len(s.heldDrift); s.last.held == 0 && before > 0 {
		v.heldWaiting += waitingForApproval(heldHere(s.status.now.Held)) - waitingForApproval(s.heldDrift)
		v.held, v.heldText = v.held+before, joined(fmt.Sprintf("deletions and recreations that a former sync has held wait for an approval: %d", before), v.heldText)
	}
	if s.gardenlets != nil {
		v.gardenlets = s.gardenlets.text
	}
	v.notes = slices.Concat(v.notes, s.untold(s.key))
	v.drift = s.drift
	for _, lines := range s.unhealthy {
		v.unhealthy = append(v.unhealthy, lines...)
	}
	s.status.set(v, attempted, s.object.Generation)
	s.status.next(s.retryAt())
	s.metrics.state(s.key, s.status.now, suspended != "")
}

// settles notes that there is a verdict on what the source is at: it was tried, or it waits and was validated. That what was applied before is kept
// says nothing of it.
func (s *syncer) settles() {
	wanted, _ := s.wanted()
	e := s.examined
	s.settled = s.settled || wanted != "" && (s.last.commitAt == s.stated(wanted) || e != nil && e.done && e.again.IsZero() && e.commitAt == s.stated(wanted))
}

// retryAt is when a sync that failed or waits is tried again; zero if there is none.
func (s *syncer) retryAt() time.Time {
	if s.decided.waiting != "" || s.decided.trigger == "" && s.last.failures > 0 && !s.last.permanent {
		return s.decided.at
	}
	return time.Time{}
}

// earliest of two times, of which none is zero if the other is not.
func earliest(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	}
	return b
}

// sourceReason is why a source cannot be read, for conditions and events.
func sourceReason(err error) string {
	if r := source.ReasonOf(err); r != "" {
		return string(r)
	}
	return reasonSourceNotReady
}
