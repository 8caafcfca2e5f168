package operator

import (
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// answer ends those who follow whatever a sync finds, without naming a commit, when the source was asked for them and has nothing new: how it
// stands then is what they get.
func (s *syncer) answer() {
	if !s.answered {
		return
	}
	if s.pollFailed != nil { // what goes on meanwhile only keeps what is applied
		s.answered = false
		failed := receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseFailed, Done: true, Err: s.pollFailed.Error() + s.staysApplied()}
		if source.IsPermanent(s.pollFailed) {
			s.hub.tellAll(failed) // also a commit that somebody has pushed cannot be had
			return
		}
		s.hub.tell("", failed)
		return
	}
	if s.preparing != nil && s.preparing.purpose.isFormer() {
		return
	}
	s.answered = false
	if s.gardenlets != nil && s.last.failures == 0 {
		return // what they make of it is the end of it
	}
	if s.preparing == nil && (s.active == nil || !s.active.applying) { // else its end is told to them
		s.hub.tell("", s.stands())
	}
}

// stands says how the last sync ended.
func (s *syncer) stands() receiver.Progress {
	out := receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseApplied, Done: true, Message: "the source has nothing new; " + s.last.revision + " is applied already"}
	fail := func(text string) receiver.Progress {
		out.Phase, out.Message, out.Err = receiver.PhaseFailed, "", text
		return out
	}
	if text := listed(s.last.operations); text != "" {
		out.Message += "; " + text
	}
	switch {
	case s.last.validErr != nil:
		return fail(s.last.validErr.Error() + s.staysApplied())
	case s.last.fetchErr != nil:
		return fail(s.last.fetchErr.Error() + s.staysApplied())
	case len(s.last.problems) > 0:
		return fail(listed(s.last.problems))
	case s.unkept != nil && s.active == nil:
		return fail(view{applied: s.appliedName(), unkept: s.unkept.err}.notKept())
	}
	if s.last.held > 0 || len(s.onSeeds) > 0 {
		out.Phase, out.Message = receiver.PhaseHeld, joined(out.Message, s.heldText())+s.toApprove()
	}
	return out
}

// staysApplied says what is in force although something newer cannot be, with what of it is in part, or not kept; empty while nothing is.
func (s *syncer) staysApplied() string {
	return view{applied: s.appliedName(), halfway: s.halfwayName(), unkept: s.notKeptNow()}.stays()
}

// catchUp tells whoever follows a commit that is done already.
func (s *syncer) catchUp(commit string) {
	if commit == "" || s.last.commitAt != s.stated(commit) || s.preparing != nil || s.active != nil && s.active.applying || s.gardenlets != nil && s.last.failures == 0 {
		return
	}
	if s.last.failures > 0 && !s.last.permanent && s.last.validErr == nil {
		return // it is tried again
	}
	s.hub.tell(commit, s.stands())
}
