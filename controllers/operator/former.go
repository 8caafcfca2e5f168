package operator

import (
	"time"

	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/source"
)

// unkept says why what was applied before this process is not kept by it.
type unkept struct {
	commit string
	err    error
	// failures in a row, the last one at a time.
	failures int
	at       time.Time
}

// keepFormer keeps what was applied last while nothing newer can be: after a restart nobody does otherwise. It says when to try again
// what did not work.
func (s *syncer) keepFormer(now time.Time) time.Time {
	if s.active != nil || s.preparing != nil || s.status.now.LastAppliedRevision == "" {
		return time.Time{}
	}
	commit := commitOf(s.status.now.LastAppliedRevision)
	if wanted, _ := s.wanted(); commit == s.last.commit || wanted == "" && s.pollFailed == nil {
		return time.Time{}
	}
	if u := s.unkept; u != nil && u.commit == commit {
		spec := &s.object.Spec
		if again := u.at.Add(backOff(retryInterval(spec), interval(spec), u.failures)); now.Before(again) {
			return again
		}
	}
	s.prepare(commit, triggerInterval, true)
	return time.Time{}
}

// cannotKeep notes why what was applied last cannot be kept. It is told once, and not with each attempt.
func (s *syncer) cannotKeep(commit string, err error, now time.Time) {
	former := s.unkept
	s.unkept = &unkept{commit: commit, err: err, failures: 1, at: now}
	if former != nil && former.commit == commit {
		s.unkept.failures = former.failures + 1
		if former.err.Error() == err.Error() {
			return
		}
	}
	applied := s.status.now.LastAppliedRevision
	s.notify(notification.Neutral, notification.Warning, reasonNotKept, view{applied: applied, unkept: err}.notKept(), "", applied)
}

// headOf is a revision that was applied before, under the name that it had then.
func headOf(applied, commit string) source.Head {
	if head, err := source.ParseRevision(applied); err == nil && head.Commit == commit {
		return head
	}
	return source.Head{Commit: commit}
}
