package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// examination validates a revision that waits for a window or another Landscape: whoever has
// written it learns now what is wrong with it, and not when it is to be applied. By then it is read
// anew, because that may be long after.
type examination struct {
	commitAt
	// windows is the digest of those of the object that it is read with.
	windows string
	cancel  context.CancelFunc
	// done says that it is over, again when the next one begins because the revision could not be
	// had; zero if it could.
	done  bool
	again time.Time
}

// examining tells whether it is not known yet if the revision that waits is valid.
func (s *syncer) examining() bool { return s.jobs.examined != nil && !s.jobs.examined.done }

// examine begins to validate what waits, once for each revision. What is applied is kept meanwhile.
// It says when to look again, zero if that is not its business.
func (s *syncer) examine(commit string, now time.Time) time.Time {
	// what is applied is read first, to compare with
	unread := s.jobs.active == nil && s.jobs.unkept == nil && s.former() != ""
	busy := s.jobs.preparing != nil || s.jobs.active != nil && s.jobs.active.applying || unread
	windows, at := digest(s.object.Spec.Windows), s.stated(commit)
	if busy || commit == "" || at == s.jobs.last.commitAt && (s.jobs.last.validErr == nil || s.jobs.last.windows == windows) {
		return time.Time{}
	}
	if e := s.jobs.examined; e != nil && e.commitAt == at && e.windows == windows && (e.again.IsZero() || now.Before(e.again)) {
		return e.again
	}
	s.unexamine()
	ctx, cancel := context.WithCancel(s.life.alive)
	e := &examination{commitAt: at, windows: windows, cancel: cancel}
	s.jobs.examined = e
	object, head, remote := s.object.DeepCopy(), s.origin.head, s.origin.remote
	fetch := remote.Fetch
	if object.Spec.Pin != nil || head.Commit != commit {
		head, fetch = source.Head{Commit: commit}, remote.former
	}
	s.refresh(object)
	with := s.reading(object, purposeDue)
	s.hub.tell(commit, receiver.Progress{Time: now, Phase: receiver.PhaseValidating, Message: "validating " + commit + ", which waits"})
	s.life.background.Go(func() {
		defer cancel()
		err := s.safely(func() error {
			snapshot, err := fetch(ctx, head)
			if err == nil {
				_, err = s.read(ctx, with, snapshot)
			}
			return err
		})
		s.do(func() {
			if s.jobs.examined != e || s.jobs.preparing != nil {
				return
			}
			e.done = true
			if err == nil { // what was wrong with one before is of no interest any more
				if s.jobs.last.validErr != nil || s.jobs.last.fetchErr != nil {
					s.jobs.last = outcome{ended: s.parts.role.Clock.Now()}
					if s.jobs.active != nil {
						s.jobs.last = s.jobs.active.outcome(s.jobs.last.ended)
						// of the one that is kept that is true still, and it is tried again
						if half := s.halfwayName(); half != "" {
							s.jobs.last.problems, s.jobs.last.failures = []string{fmt.Sprintf("the sync of %s was not completed", half)}, 1
						}
					}
				}
				return
			}
			if !isInvalid(err) && !source.IsPermanent(err) { // it may go better later
				e.again = s.parts.role.Clock.Now().Add(retryInterval(&s.object.Spec))
				return
			}
			s.refused(&preparation{commitAt: at, attempt: attempt{trigger: triggerCommit, head: head, spec: specOf(object)}, windows: windows}, err)
		})
	})
	return time.Time{}
}

// unexamine gives up what is examined: it is wanted no more, or is read to be applied.
func (s *syncer) unexamine() {
	if s.jobs.examined != nil {
		s.jobs.examined.cancel()
	}
	s.jobs.examined = nil
}
