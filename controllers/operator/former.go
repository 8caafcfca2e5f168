package operator

import (
	"errors"
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

// keepOnly keeps what was applied last while the object itself is wrong: nothing newer is applied, but what is applied is looked after, also after
// a restart. It says when to look again.
func (s *syncer) keepOnly(now time.Time) time.Time {
	switch {
	case s.nameTaken: // what is remembered by the name is another one's
		return time.Time{}
	case s.object.Spec.Source == nil || !s.readable():
		if s.active == nil && s.unkept == nil && s.status.now.LastAppliedRevision != "" {
			s.cannotKeep(commitOf(s.status.now.LastAppliedRevision), errors.New(s.misconfigured), now)
		}
		return time.Time{}
	}
	next := s.open(now)
	if s.remote == nil {
		return next
	}
	if !s.remote.offline {
		next = s.poll(now)
	}
	if s.active == nil {
		return earliest(next, s.keepFormer(now))
	}
	commit := s.active.revision.Commit
	if s.preparing != nil || s.active.applying || s.last.commit != commit {
		return next // a revision that was refused is not tried again meanwhile
	}
	situation := s.situation(now)
	situation.wanted, situation.pinned, situation.blocked, situation.windows = commit, false, "", windowState{open: true}
	d := decide(situation)
	switch {
	case d.trigger == "":
		return earliest(next, d.at)
	case s.last.failures == 0 && d.trigger == triggerInterval:
		s.active.again(d.trigger, now)
	default:
		s.prepare(commit, d.trigger, true)
	}
	return next
}

// keepFormer keeps what was applied last while nothing newer can be: after a restart nobody does otherwise. It says when to try again
// what did not work.
func (s *syncer) keepFormer(now time.Time) time.Time {
	if s.active != nil || s.preparing != nil || s.status.now.LastAppliedRevision == "" {
		return time.Time{}
	}
	commit := commitOf(s.status.now.LastAppliedRevision)
	if wanted, _ := s.wanted(); commit == s.last.commit || wanted == "" && s.pollFailed == nil && s.misconfigured == "" {
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
