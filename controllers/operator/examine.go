package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// examination validates a revision that waits for a window or another Landscape, so that its author
// learns of errors early. The revision is read anew before it is applied.
type examination struct {
	commitAt
	// windows is the digest of the object's windows during the read.
	windows string
	cancel  context.CancelFunc
	// done means that the examination is over. again is when to retry if the revision could not be
	// fetched; else zero.
	done  bool
	again time.Time
}

// examining reports whether the validation of the waiting revision is still running.
func (s *syncer) examining() bool { return s.jobs.examined != nil && !s.jobs.examined.done }

// examine starts to validate the waiting revision, once per revision. The applied revision is
// maintained meanwhile. It returns when to retry a failed fetch; else zero.
func (s *syncer) examine(commit string, now time.Time) time.Time {
	// The applied revision is read first, for the comparison.
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
			if err == nil { // errors of an earlier revision are obsolete
				if s.jobs.last.validErr != nil || s.jobs.last.fetchErr != nil {
					s.jobs.last = outcome{ended: s.parts.role.Clock.Now()}
					if s.jobs.active != nil {
						s.jobs.last = s.jobs.active.outcome(s.jobs.last.ended)
						// Still true for the maintained revision, which is retried.
						if half := s.halfwayName(); half != "" {
							s.jobs.last.problems, s.jobs.last.failures = []string{fmt.Sprintf("the sync of %s was not completed", half)}, 1
						}
					}
				}
				return
			}
			if !isInvalid(err) && !source.IsPermanent(err) { // a retry may help
				e.again = s.parts.role.Clock.Now().Add(retryInterval(&s.object.Spec))
				return
			}
			s.refused(&preparation{commitAt: at, attempt: attempt{trigger: triggerCommit, head: head, spec: specOf(object)}, windows: windows}, err)
		})
	})
	return time.Time{}
}

// unexamine cancels the examination: the revision is obsolete, or is read to be applied.
func (s *syncer) unexamine() {
	if s.jobs.examined != nil {
		s.jobs.examined.cancel()
	}
	s.jobs.examined = nil
}
