// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// waitingValidation validates a revision that waits for a window or another Landscape, so that its
// author learns of errors early. The revision is read again before it is applied.
type waitingValidation struct {
	commitPath
	// windowsDigest is the digest of the object's windows during the read.
	windowsDigest string
	cancel        context.CancelFunc
	// isDone means that the examination is over. retryAt is when to retry if the revision could not
	// be fetched, else zero.
	isDone  bool
	retryAt time.Time
}

// isValidatingWaiting reports whether the validation of the waiting revision is still running.
func (s *landscapeReconciler) isValidatingWaiting() bool {
	return s.jobs.examination != nil && !s.jobs.examination.isDone
}

// validateWaiting starts to validate the waiting revision, once per revision. The applied revision
// is maintained meanwhile. It returns when to retry a failed fetch; else zero.
func (s *landscapeReconciler) validateWaiting(commit string, now time.Time) time.Time {
	// The applied revision is read first, for the comparison.
	unread := s.jobs.activeJob == nil && s.jobs.maintainFailure == nil && s.maintainedRevision() != ""
	busy := s.jobs.preparation != nil || s.jobs.activeJob != nil && s.jobs.activeJob.isApplying || unread
	windows, at := jsonDigest(s.object.Spec.Windows), s.specCommitPath(commit)
	if busy || commit == "" || at == s.jobs.lastOutcome.commitPath && (s.jobs.lastOutcome.validErr == nil || s.jobs.lastOutcome.windowsDigest == windows) {
		return time.Time{}
	}
	if e := s.jobs.examination; e != nil && e.commitPath == at && e.windowsDigest == windows && (e.retryAt.IsZero() || now.Before(e.retryAt)) {
		return e.retryAt
	}
	s.cancelWaitingValidation()
	ctx, cancel := context.WithCancel(s.lifetime.ctx)
	e := &waitingValidation{commitPath: at, windowsDigest: windows, cancel: cancel}
	s.jobs.examination = e
	object, head, remote := s.object.DeepCopy(), s.sourceAccess.head, s.sourceAccess.remote
	fetch := remote.Fetch
	if object.Spec.Pin != nil || head.Commit != commit {
		head, fetch = source.Head{Commit: commit}, remote.fetchCommit
	}
	s.copyStatusTo(object)
	with := s.newRevisionReader(object, purposeApply)
	s.broadcaster.broadcast(commit, receiver.Progress{Time: now, Phase: receiver.PhaseValidating, Message: "validating " + commit + " while it waits"})
	s.lifetime.background.Go(func() {
		defer cancel()
		err := s.catchPanic(func() error {
			snapshot, err := fetch(ctx, head)
			if err == nil {
				_, err = s.readRevision(ctx, with, snapshot)
			}
			return err
		})
		s.enqueue(func() {
			if s.jobs.examination != e || s.jobs.preparation != nil {
				return
			}
			e.isDone = true
			if err == nil { // errors of an earlier revision are obsolete
				if s.jobs.lastOutcome.validErr != nil || s.jobs.lastOutcome.fetchErr != nil {
					s.jobs.lastOutcome = syncOutcome{endedAt: s.operator.role.Clock.Now()}
					if s.jobs.activeJob != nil {
						s.jobs.lastOutcome = s.jobs.activeJob.baseOutcome(s.jobs.lastOutcome.endedAt)
						// Still true for the maintained revision, which is retried.
						if half := s.partialRevisionName(); half != "" {
							s.jobs.lastOutcome.problems, s.jobs.lastOutcome.failures = []string{fmt.Sprintf("the sync of %s did not complete", half)}, 1
						}
					}
				}
				return
			}
			if !isInvalid(err) && !source.IsPermanent(err) { // a retry may help
				e.retryAt = s.operator.role.Clock.Now().Add(retryInterval(&s.object.Spec))
				return
			}
			s.rejectRevision(&preparation{commitPath: at, attempt: attempt{trigger: triggerCommit, head: head, spec: specOf(object)}, windowsDigest: windows}, err)
		})
	})
	return time.Time{}
}

// cancelWaitingValidation cancels the examination: the revision is obsolete, or is read to be
// applied.
func (s *landscapeReconciler) cancelWaitingValidation() {
	if s.jobs.examination != nil {
		s.jobs.examination.cancel()
	}
	s.jobs.examination = nil
}
