package operator

import (
	"context"

	"github.com/pergola-dev/pergola/source"
)

// examination validates a revision that waits for a window or another Landscape: whoever has written it learns now what is wrong with it, and not
// when it is to be applied. By then it is read anew, because that may be long after.
type examination struct {
	commit string
	cancel context.CancelFunc
}

// examine begins to validate what waits, once for each revision. What is applied is kept meanwhile.
func (s *syncer) examine(commit string) {
	busy := s.preparing != nil || s.active != nil && s.active.applying || s.active == nil && s.status.now.LastAppliedRevision != ""
	if busy || commit == "" || commit == s.last.commit || s.examined != nil && s.examined.commit == commit {
		return
	}
	s.unexamine()
	ctx, cancel := context.WithCancel(s.alive)
	e := &examination{commit: commit, cancel: cancel}
	s.examined = e
	object, head, remote := s.object.DeepCopy(), s.head, s.remote
	fetch := remote.Fetch
	if object.Spec.Pin != nil || head.Commit != commit {
		head, fetch = source.Head{Commit: commit}, remote.former
	}
	var former *revision
	if s.active != nil {
		former = s.active.revision
	}
	s.background.Go(func() {
		defer cancel()
		err := s.safely(func() error {
			snapshot, err := fetch(ctx, head)
			if err == nil {
				_, err = s.read(ctx, object, snapshot, former)
			}
			return err
		})
		s.do(func() {
			if s.examined != e || s.preparing != nil {
				return
			}
			if err == nil { // what was wrong with one before is of no interest any more
				if s.last.validErr != nil || s.last.fetchErr != nil {
					s.last = outcome{ended: s.Clock.Now()}
					if s.active != nil {
						s.last.commit, s.last.revision, s.last.spec, s.last.head = s.active.revision.Commit, s.active.revision.Revision(), s.active.spec, s.active.head
					}
				}
				return
			}
			if !isInvalid(err) && !source.IsPermanent(err) { // it may go better with the next look
				s.examined = nil
				return
			}
			s.refused(&preparation{commit: commit, head: head, trigger: triggerCommit}, err)
		})
	})
}

// unexamine gives up what is examined: it is wanted no more, or is read to be applied.
func (s *syncer) unexamine() {
	if s.examined != nil {
		s.examined.cancel()
	}
	s.examined = nil
}
