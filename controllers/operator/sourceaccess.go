// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"time"

	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// openSource creates the access to the source, and replaces it when the spec changes. While the
// source is unreadable it also rereads the Secrets before each poll. Without access it returns when
// to retry.
func (s *landscapeReconciler) openSource(now time.Time) time.Time {
	id := sourceID(s.object)
	same := s.sourceAccess.openedID == id
	there := s.sourceAccess.remote != nil && !s.sourceAccess.remote.isOffline
	switch {
	case same && there && (!s.isSourceUnreadable() || s.sourceAccess.isPolling || !s.isPollDue(now)):
		return time.Time{}
	case same && !there && !s.requests.pollRequested && now.Before(s.sourceAccess.reopenAt):
		return s.sourceAccess.reopenAt
	}
	found, err := s.operator.secretReaderOf(s.object).readSourceSecrets(s.lifetime.ctx, s.object.Spec.Source)
	if same && there && err == nil && s.sourceAccess.remote.secretsDigest == found.digest() {
		return time.Time{}
	}
	var remote source.Remote
	if err == nil {
		remote, err = s.operator.openRemote(s.object, found)
	}
	if !same {
		s.sourceAccess.head = source.Head{}
	}
	s.sourceAccess.openedID = id
	if err != nil {
		s.requests.isPollDone, s.requests.awaitsPoll = s.requests.isPollDone || s.requests.pollRequested, false
		s.requests.pollRequested, s.sourceAccess.reopenAt = false, now.Add(retryInterval(&s.object.Spec))
		s.reportSourceFailure(err)
		s.openOffline(id, now)
		return s.sourceAccess.reopenAt
	}
	s.closeSource()
	s.sourceAccess.remote = newSourceConnection(s.lifetime.ctx, remote, id, found.digest(), s.sourceAccess.previousClosed)
	s.sourceAccess.head, s.sourceAccess.polledAt, s.sourceAccess.pollErr = source.Head{}, time.Time{}, nil
	if s.jobs.maintainFailure != nil {
		s.jobs.maintainFailure.failedAt = time.Time{} // it may be available now
	}
	return time.Time{}
}

// openOffline maintains the last applied revision from the source's cache.
func (s *landscapeReconciler) openOffline(id string, now time.Time) {
	if s.maintainedRevision() == "" {
		s.closeSource()
		return
	}
	keys, err := s.operator.secretReaderOf(s.object).verificationKeys(s.lifetime.ctx, s.object.Spec.Source)
	digest := sourceSecrets{Keys: keys}.digest()
	if err == nil && s.sourceAccess.remote != nil && s.sourceAccess.remote.isOffline && s.sourceAccess.remote.id == id && s.sourceAccess.remote.secretsDigest == digest {
		return
	}
	s.closeSource()
	var remote source.Remote
	if err == nil {
		remote, err = s.operator.openCache(s.object, keys, s.maintainedRevision())
	}
	if err != nil {
		if s.jobs.activeJob == nil {
			s.recordMaintainFailure(commitOf(s.maintainedRevision()), err, now)
		}
		return
	}
	s.sourceAccess.remote = newSourceConnection(s.lifetime.ctx, remote, id, digest, s.sourceAccess.previousClosed)
	s.sourceAccess.remote.isOffline = true
}

// reportSourceFailure records why the source cannot be read. It notifies once per error.
func (s *landscapeReconciler) reportSourceFailure(err error) {
	former := s.sourceAccess.pollErr
	s.sourceAccess.pollErr = err
	s.broadcaster.broadcastToAll(receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseFetching, Message: err.Error()})
	if former == nil || former.Error() != err.Error() {
		s.notify(notification.Neutral, notification.Warning, sourceReason(err), err.Error(), "", s.status.desired.LastAppliedRevision)
	}
}

// isSourceUnreadable reports whether the source cannot be read, so that another Secret may help.
func (s *landscapeReconciler) isSourceUnreadable() bool {
	return s.sourceAccess.pollErr != nil || s.jobs.lastOutcome.fetchErr != nil
}

// closeSource closes the access to the source and cancels everything that uses it.
func (s *landscapeReconciler) closeSource() {
	if s.sourceAccess.remote == nil {
		return
	}
	s.cancelPreparation()
	s.sourceAccess.remote.closeInBackground()
	s.sourceAccess.previousClosed, s.sourceAccess.remote, s.sourceAccess.isPolling = s.sourceAccess.remote.closed, nil, false
}
