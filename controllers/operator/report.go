// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// answerWaitingFollowers ends the followers of a sync that cannot start now.
func (s *landscapeReconciler) answerWaitingFollowers(suspended string) {
	wanted, _ := s.wantedCommit()
	switch {
	case suspended != "":
		s.broadcaster.broadcastToAll(receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseHeld, Message: suspendedText(suspended, s.key.String()), Done: true})
	case s.faults.misconfiguration != "": // only a change of the object helps
		s.broadcaster.broadcastToAll(receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseFailed, Err: s.faults.misconfiguration + s.currentRevisionText(), Done: true})
	case s.jobs.decision.waitReason != "" && wanted != "" && s.isValidatingWaiting():
		// The result of the examination is more useful.
	case s.jobs.decision.waitReason != "" && wanted != "" && s.jobs.lastOutcome.commitPath == s.specCommitPath(wanted) && s.jobs.lastOutcome.validErr != nil:
		if s.requests.isPollRunning {
			return // the source may have a better one
		}
		s.broadcaster.broadcast(wanted, receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseFailed, Err: s.jobs.lastOutcome.validErr.Error() + s.currentRevisionText(), Done: true})
	case s.jobs.decision.waitReason != "" && wanted != "":
		s.broadcaster.broadcastToAll(receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseHeld, Message: s.sourceRevisionOf(wanted) + ": " + s.jobs.decision.waitReason, Done: true})
	case s.object.Spec.Pin != nil:
		pin := s.object.Spec.Pin
		s.broadcaster.broadcastToOthers(pin.Revision, receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseHeld, Done: true,
			Message: pinnedText(pin, s.key.String())})
	}
}

// pinnedText explains the pin to followers of other revisions.
func pinnedText(pin *landscapev1alpha1.Pin, landscape string) string {
	return conditionInput{revisions: revisionNames{pin: pin}}.pinPrefix() + "no other revision is applied until it is unpinned (pergola rollback " + landscape + " --unpin)"
}

// suspendedText explains the suspension to followers of a sync.
func suspendedText(suspended, landscape string) string {
	return "nothing is applied, because the Landscape is " + suspended + "; to continue: pergola resume " + landscape
}

// reportStatus updates the status.
func (s *landscapeReconciler) reportStatus(suspended string) {
	s.answerWaitingFollowers(suspended)
	s.reportObjectFaults()
	v := conditionInput{
		objectState: objectState{missingDependencies: s.faults.reportedMissing, misconfiguration: s.faults.misconfiguration, isNameTaken: s.faults.misconfiguration != "" && s.faults.isNameTaken, suspendReason: suspended},
		current:     progressState{isPolling: s.requests.awaitsPoll, waitReason: s.jobs.decision.waitReason},
		revisions:   revisionNames{attempted: s.revisionName(s.jobs.lastOutcome.revision, s.jobs.lastOutcome.folder), applied: s.appliedRevisionName(), pin: s.object.Spec.Pin}, readState: fetchState{sourceErr: s.sourceAccess.pollErr, validErr: s.jobs.lastOutcome.validErr}, lastSync: lastSyncState{problems: s.jobs.lastOutcome.problems, isPermanent: s.jobs.lastOutcome.isPermanent}, pending: pendingState{heldCount: s.jobs.lastOutcome.openItems.heldCount + len(s.findings.heldRepairs) + len(s.findings.heldOnSeeds), heldText: s.heldText(), awaitingApproval: s.jobs.lastOutcome.openItems.awaitingApproval + countAwaitingApproval(s.findings.heldRepairs) + countAwaitingApproval(s.findings.heldOnSeeds), operations: s.jobs.lastOutcome.openItems.operations, expiredOperations: s.jobs.lastOutcome.openItems.expiredOperations},
	}
	if v.readState.sourceErr == nil {
		v.readState.sourceErr = s.jobs.lastOutcome.fetchErr
	}
	// Other Landscapes wait for this one to be ready, so the result of an earlier process counts
	// until this one has its own.
	ready := condition.Get(s.status.desired.Conditions, landscapev1alpha1.LandscapeReady)
	s.recordVerdict()
	v.current.awaitsVerdict = !s.jobs.hasVerdict && ready != nil && ready.Status != gardencorev1beta1.ConditionTrue
	v.lastSync.maintainErr = s.maintainError()
	if s.sourceAccess.head.Commit != "" {
		v.revisions.wanted = s.sourceAccess.head.Revision()
	}
	if v.revisions.pin != nil {
		if s.sourceAccess.head.Commit != v.revisions.pin.Revision {
			v.revisions.excludedByPin = v.revisions.wanted
		}
		v.revisions.wanted = v.revisions.pin.Revision
	}
	attempted := s.jobs.lastOutcome.revision
	if v.revisions.attempted == "" {
		v.revisions.attempted, attempted = v.revisions.applied, s.status.desired.LastAppliedRevision
	}
	unread := s.jobs.lastOutcome.fetchErr != nil
	if s.jobs.activeJob != nil {
		v.lastSync.notes = slices.Clone(s.jobs.activeJob.revision.notes)
		if failed := &s.jobs.activeJob.failedAttempts; failed.count > 0 && !s.jobs.activeJob.isApplying && s.jobs.lastOutcome.commitPath != s.jobs.activeJob.revision.commitPath() {
			v.lastSync.notes = append(v.lastSync.notes, fmt.Sprintf("retrying %s: %s", s.revisionName(s.jobs.activeJob.revision.Revision(), s.jobs.activeJob.revision.folder), joinWithLimit(failed.problems)))
		}
		if s.jobs.activeJob.isApplying {
			v.current.syncProgress, v.current.isApplying = s.jobs.activeJob.progressText(), true
			attempted = s.jobs.activeJob.revision.Revision()
			v.revisions.attempted = s.revisionName(attempted, s.jobs.activeJob.revision.folder)
			unread = unread && s.jobs.lastOutcome.commitPath == s.jobs.activeJob.revision.commitPath()
		}
	}
	v.readState.isUnread = unread
	if s.jobs.preparation != nil && !s.jobs.preparation.purpose.isForAppliedRevision() {
		v.current.syncProgress, v.current.isApplying = "reading "+s.jobs.preparation.commit, false
		if appliedCommitPath(&s.status.desired) != s.jobs.preparation.commitPath {
			attempted, v.readState.isReading = s.sourceRevisionOf(s.jobs.preparation.commit), true
			v.revisions.attempted = s.revisionName(attempted, s.jobs.preparation.folder)
		}
	}
	if s.isValidatingWaiting() {
		v.current.validationProgress = "validating " + s.jobs.examination.commit + " while it waits"
	}
	if v.current.syncProgress == "" {
		v.revisions.partial = s.partialRevisionName()
	}
	// Deletions that an earlier sync held stay held until another sync reports otherwise.
	if before := len(heldByOperator(s.status.desired.Held)) - len(s.findings.heldRepairs); s.jobs.lastOutcome.openItems.heldCount == 0 && before > 0 {
		v.pending.awaitingApproval += countAwaitingApproval(heldByOperator(s.status.desired.Held)) - countAwaitingApproval(s.findings.heldRepairs)
		v.pending.heldCount, v.pending.heldText = v.pending.heldCount+before, joinNonEmpty(fmt.Sprintf("deletions and recreations held by an earlier sync wait for an approval: %d", before), v.pending.heldText)
	}
	if s.findings.gardenletWaiter != nil {
		v.current.gardenletsText = s.findings.gardenletWaiter.waitText
	}
	v.lastSync.notes = slices.Concat(v.lastSync.notes, s.operator.destinationErrors(s.key))
	v.clusters.drift = s.findings.unrepairedDrift
	for _, lines := range s.findings.unhealthyConditions {
		v.clusters.unhealthy = append(v.clusters.unhealthy, lines...)
	}
	s.status.setConditions(v, attempted, s.object.Generation)
	s.status.setNextSync(s.nextRetryTime())
	s.operator.metrics.setState(s.key, s.status.desired, suspended != "")
}

// recordVerdict notes that the source's revision has a verdict: it was attempted, or it waits and
// was validated. Maintaining the applied revision does not count.
func (s *landscapeReconciler) recordVerdict() {
	wanted, _ := s.wantedCommit()
	e := s.jobs.examination
	s.jobs.hasVerdict = s.jobs.hasVerdict || wanted != "" && (s.jobs.lastOutcome.commitPath == s.specCommitPath(wanted) || e != nil && e.isDone && e.retryAt.IsZero() && e.commitPath == s.specCommitPath(wanted))
}

// nextRetryTime returns when a failed or waiting sync is retried, or zero if there is none.
func (s *landscapeReconciler) nextRetryTime() time.Time {
	if s.jobs.decision.waitReason != "" || s.jobs.decision.trigger == "" && s.jobs.lastOutcome.failures > 0 && !s.jobs.lastOutcome.isPermanent {
		return s.jobs.decision.nextCheck
	}
	return time.Time{}
}

// earlierTime returns the earlier of two times; a zero time does not count.
func earlierTime(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	}
	return b
}

// sourceReason returns why a source cannot be read, for conditions and events.
func sourceReason(err error) string {
	if r := source.ReasonOf(err); r != "" {
		return string(r)
	}
	return reasonSourceNotReady
}
