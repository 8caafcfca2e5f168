package operator

import (
	"time"

	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// open creates the access to the source, and replaces it when the spec changes. While the source is
// unreadable it also rereads the Secrets before each poll. Without access it returns when to retry.
func (s *syncer) open(now time.Time) time.Time {
	id := sourceID(s.object)
	same := s.origin.opened == id
	there := s.origin.remote != nil && !s.origin.remote.offline
	switch {
	case same && there && (!s.troubled() || s.origin.polling || !s.pollDue(now)):
		return time.Time{}
	case same && !there && !s.asks.askedPoll && now.Before(s.origin.reopen):
		return s.origin.reopen
	}
	found, err := s.parts.secretsOf(s.object).ofSource(s.life.alive, s.object.Spec.Source)
	if same && there && err == nil && s.origin.remote.secrets == found.digest() {
		return time.Time{}
	}
	var remote source.Remote
	if err == nil {
		remote, err = s.parts.openRemote(s.object, found)
	}
	if !same {
		s.origin.head = source.Head{}
	}
	s.origin.opened = id
	if err != nil {
		s.asks.answered, s.asks.asking = s.asks.answered || s.asks.askedPoll, false
		s.asks.askedPoll, s.origin.reopen = false, now.Add(retryInterval(&s.object.Spec))
		s.sourceFailed(err)
		s.withoutAccess(id, now)
		return s.origin.reopen
	}
	s.closeRemote()
	s.origin.remote = connect(s.life.alive, remote, id, found.digest(), s.origin.closed)
	s.origin.head, s.origin.polled, s.origin.pollFailed = source.Head{}, time.Time{}, nil
	if s.jobs.unkept != nil {
		s.jobs.unkept.at = time.Time{} // it may be available now
	}
	return time.Time{}
}

// withoutAccess maintains the last applied revision from the source's cache.
func (s *syncer) withoutAccess(id string, now time.Time) {
	if s.former() == "" {
		s.closeRemote()
		return
	}
	keys, err := s.parts.secretsOf(s.object).keys(s.life.alive, s.object.Spec.Source)
	digest := sourceSecrets{Keys: keys}.digest()
	if err == nil && s.origin.remote != nil && s.origin.remote.offline && s.origin.remote.id == id && s.origin.remote.secrets == digest {
		return
	}
	s.closeRemote()
	var remote source.Remote
	if err == nil {
		remote, err = s.parts.openCache(s.object, keys, s.former())
	}
	if err != nil {
		if s.jobs.active == nil {
			s.cannotKeep(commitOf(s.former()), err, now)
		}
		return
	}
	s.origin.remote = connect(s.life.alive, remote, id, digest, s.origin.closed)
	s.origin.remote.offline = true
}

// sourceFailed records why the source cannot be read. It notifies once per error.
func (s *syncer) sourceFailed(err error) {
	former := s.origin.pollFailed
	s.origin.pollFailed = err
	s.hub.tellAll(receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseFetching, Message: err.Error()})
	if former == nil || former.Error() != err.Error() {
		s.notify(notification.Neutral, notification.Warning, sourceReason(err), err.Error(), "", s.status.now.LastAppliedRevision)
	}
}

// troubled reports whether the source cannot be read, so that another Secret may help.
func (s *syncer) troubled() bool { return s.origin.pollFailed != nil || s.jobs.last.fetchErr != nil }

// closeRemote closes the access to the source and cancels everything that uses it.
func (s *syncer) closeRemote() {
	if s.origin.remote == nil {
		return
	}
	s.unprepare()
	s.origin.remote.end()
	s.origin.closed, s.origin.remote, s.origin.polling = s.origin.remote.done, nil, false
}
