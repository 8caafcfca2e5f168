package operator

import (
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// answer completes the requests that follow any sync, not a certain commit, when their poll finds
// nothing new. They get the result of the last sync.
func (s *syncer) answer() {
	if !s.asks.answered {
		return
	}
	if s.origin.pollFailed != nil { // a preparation at this time only maintains what is applied
		s.asks.answered = false
		failed := receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseFailed, Done: true, Err: s.origin.pollFailed.Error() + s.staysApplied()}
		if source.IsPermanent(s.origin.pollFailed) {
			s.hub.tellAll(failed) // followers of a pushed commit, too: it cannot be fetched
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
		return // followers get the result of the gardenlets
	}
	// Otherwise the end of the running sync completes them.
	if s.jobs.preparing == nil && (s.jobs.active == nil || !s.jobs.active.applying) {
		s.hub.tell("", s.stands())
	}
}

// stands returns the result of the last sync.
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

// staysApplied names the revision in force while a newer one cannot be applied, whether it is
// partial or unmaintained; empty if there is none.
func (s *syncer) staysApplied() string {
	return view{is: revisionsShown{applied: s.appliedName(), halfway: s.halfwayName()}, last: lastShown{unkept: s.notKeptNow()}}.stays()
}

// catchUp answers followers of a commit whose sync is already over.
func (s *syncer) catchUp(commit string) {
	if commit == "" || s.jobs.last.commitAt != s.stated(commit) || s.jobs.preparing != nil || s.jobs.active != nil && s.jobs.active.applying || s.found.gardenlets != nil && s.jobs.last.failures == 0 {
		return
	}
	if s.jobs.last.failures > 0 && !s.jobs.last.permanent && s.jobs.last.validErr == nil {
		return // it is retried
	}
	s.hub.tell(commit, s.stands())
}
