package operator

import (
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// answer ends those who follow whatever a sync finds, without naming a commit, when the source was
// asked for them and has nothing new: how it stands then is what they get.
func (s *syncer) answer() {
	if !s.asks.answered {
		return
	}
	if s.origin.pollFailed != nil { // what goes on meanwhile only keeps what is applied
		s.asks.answered = false
		failed := receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseFailed, Done: true, Err: s.origin.pollFailed.Error() + s.staysApplied()}
		if source.IsPermanent(s.origin.pollFailed) {
			s.hub.tellAll(failed) // also a commit that somebody has pushed cannot be had
			return
		}
		s.hub.tell("", failed)
		return
	}
	if s.jobs.preparing != nil && s.jobs.preparing.purpose.isFormer() {
		return
	}
	s.asks.answered = false
	if s.found.gardenlets != nil && s.jobs.last.failures == 0 {
		return // what they make of it is the end of it
	}
	// else its end is told to them
	if s.jobs.preparing == nil && (s.jobs.active == nil || !s.jobs.active.applying) {
		s.hub.tell("", s.stands())
	}
}

// stands says how the last sync ended.
func (s *syncer) stands() receiver.Progress {
	out := receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseApplied, Done: true, Message: "the source has nothing new; " + s.jobs.last.revision + " is applied already"}
	fail := func(text string) receiver.Progress {
		out.Phase, out.Message, out.Err = receiver.PhaseFailed, "", text
		return out
	}
	if text := listed(s.jobs.last.open.operations); text != "" {
		out.Message += "; " + text
	}
	switch {
	case s.jobs.last.validErr != nil:
		return fail(s.jobs.last.validErr.Error() + s.staysApplied())
	case s.jobs.last.fetchErr != nil:
		return fail(s.jobs.last.fetchErr.Error() + s.staysApplied())
	case len(s.jobs.last.problems) > 0:
		return fail(listed(s.jobs.last.problems))
	case s.jobs.unkept != nil && s.jobs.active == nil:
		return fail(view{is: revisionsShown{applied: s.appliedName()}, last: lastShown{unkept: s.jobs.unkept.err}}.notKept())
	}
	if s.jobs.last.open.held > 0 || len(s.found.onSeeds) > 0 {
		out.Phase, out.Message = receiver.PhaseHeld, joined(out.Message, s.heldText())+s.toApprove()
	}
	return out
}

// staysApplied says what is in force although something newer cannot be, with what of it is in
// part, or not kept; empty while nothing is.
func (s *syncer) staysApplied() string {
	return view{is: revisionsShown{applied: s.appliedName(), halfway: s.halfwayName()}, last: lastShown{unkept: s.notKeptNow()}}.stays()
}

// catchUp tells whoever follows a commit that is done already.
func (s *syncer) catchUp(commit string) {
	if commit == "" || s.jobs.last.commitAt != s.stated(commit) || s.jobs.preparing != nil || s.jobs.active != nil && s.jobs.active.applying || s.found.gardenlets != nil && s.jobs.last.failures == 0 {
		return
	}
	if s.jobs.last.failures > 0 && !s.jobs.last.permanent && s.jobs.last.validErr == nil {
		return // it is tried again
	}
	s.hub.tell(commit, s.stands())
}
