package operator

import (
	"time"

	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// open prepares the access to the source. It is made anew when the object says something else, and while the source cannot be read also
// when its Secrets do: they are looked at before each poll then. Without access it says when that is looked for again.
func (s *syncer) open(now time.Time) time.Time {
	id := sourceID(s.object)
	same := s.opened == id
	there := s.remote != nil && !s.remote.offline
	switch {
	case same && there && (!s.troubled() || s.polling || !s.pollDue(now)):
		return time.Time{}
	case same && !there && !s.askedPoll && now.Before(s.reopen):
		return s.reopen
	}
	found, err := s.secretsOf(s.object).ofSource(s.alive, s.object.Spec.Source)
	if same && there && err == nil && s.remote.secrets == found.digest() {
		return time.Time{}
	}
	var remote source.Remote
	if err == nil {
		remote, err = s.openRemote(s.object, found)
	}
	if !same {
		s.head = source.Head{}
	}
	s.opened = id
	if err != nil {
		s.answered, s.asking = s.answered || s.askedPoll, false
		s.askedPoll, s.reopen = false, now.Add(retryInterval(&s.object.Spec))
		s.sourceFailed(err)
		s.withoutAccess(id, now)
		return s.reopen
	}
	s.closeRemote()
	s.remote = connect(s.alive, remote, id, found.digest(), s.closed)
	s.head, s.polled, s.pollFailed = source.Head{}, time.Time{}, nil
	if s.unkept != nil {
		s.unkept.at = time.Time{} // it may be had now
	}
	return time.Time{}
}

// withoutAccess works with what the cache of the source holds: what was applied last is kept by it.
func (s *syncer) withoutAccess(id string, now time.Time) {
	if s.former() == "" {
		s.closeRemote()
		return
	}
	keys, err := s.secretsOf(s.object).keys(s.alive, s.object.Spec.Source)
	digest := sourceSecrets{Keys: keys}.digest()
	if err == nil && s.remote != nil && s.remote.offline && s.remote.id == id && s.remote.secrets == digest {
		return
	}
	s.closeRemote()
	var remote source.Remote
	if err == nil {
		remote, err = s.openCache(s.object, keys, s.former())
	}
	if err != nil {
		if s.active == nil {
			s.cannotKeep(commitOf(s.former()), err, now)
		}
		return
	}
	s.remote = connect(s.alive, remote, id, digest, s.closed)
	s.remote.offline = true
}

// sourceFailed notes why the source cannot be read. It is told once, and not with each poll.
func (s *syncer) sourceFailed(err error) {
	former := s.pollFailed
	s.pollFailed = err
	s.hub.tellAll(receiver.Progress{Time: s.Clock.Now(), Phase: receiver.PhaseFetching, Message: err.Error()})
	if former == nil || former.Error() != err.Error() {
		s.notify(notification.Neutral, notification.Warning, sourceReason(err), err.Error(), "", s.status.now.LastAppliedRevision)
	}
}

// troubled tells whether the source cannot be read, so that another Secret may help.
func (s *syncer) troubled() bool { return s.pollFailed != nil || s.last.fetchErr != nil }

// closeRemote gives the access to the source up, with everything that goes on by it.
func (s *syncer) closeRemote() {
	if s.remote == nil {
		return
	}
	s.unprepare()
	s.remote.end()
	s.closed, s.remote, s.polling = s.remote.done, nil, false
}
