// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/source/receiver"
)

// startJob applies a revision, and stops the job of the previous one.
func (s *landscapeReconciler) startJob(p *preparation, j *job) {
	now := s.operator.role.Clock.Now()
	ctx, cancel := context.WithCancel(s.lifetime.ctx)
	j.attempt, j.reporting.startedAt = p.attempt, now
	j.control.stop = func() { // marks later failures as the effect of the stop
		j.control.isStopped.Store(true)
		cancel()
	}
	before := s.jobs.pausedDone
	s.jobs.pausedDone = nil
	s.findings.unhealthyConditions, s.jobs.maintainFailure, s.findings.unrepairedDrift, s.findings.heldRepairs = nil, nil, nil, nil
	if w := s.findings.gardenletWaiter; w != nil && w.job.revision.commitPath() == j.revision.commitPath() {
		j.addAwaitedOwners(w.remaining...)
	}
	s.cancelGardenletWait()
	if former := s.jobs.activeJob; former != nil {
		if former.revision.commitPath() == j.revision.commitPath() {
			j.addAwaitedOwners(former.takeAwaitedOwners()...)
			j.pendingSeeds.publishedSeeds, j.failedAttempts = former.takePublishedSeeds(), former.failedAttempts
		}
		if former.isApplying && former.reporting.isInHistory {
			s.status.closeRecord(now, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncSuperseded, Message: "superseded by " + j.revision.Revision()})
			s.operator.metrics.countSync(s.key, landscapev1alpha1.SyncSuperseded, now.Sub(former.reporting.startedAt))
		}
		former.control.stop()
		before = former.control.done
	}
	s.jobs.activeJob = j
	unused := s.shared.clusters.takeReplaced()
	if !p.purpose.isForAppliedRevision() {
		j.reporting.isLastOperation = true
		s.status.setOperation(gardencorev1beta1.LastOperationStateProcessing, 0, j.progressText())
		// A retry is neither announced nor recorded before its result differs.
		if p.trigger != triggerRetry {
			s.openJobRecord(j, now)
			s.notify(notification.Pending, notification.Info, reasonReconciling, "applying "+j.revision.Revision(), j.revision.Commit, j.revision.Revision())
		}
		s.broadcaster.broadcast(j.revision.Commit, receiver.Progress{Time: now, Phase: receiver.PhaseApplying, Message: "applying " + j.revision.Revision()})
	}
	limit := syncTimeout(&s.object.Spec, &j.revision.landscape.Config.Spec)
	s.lifetime.background.Go(func() {
		defer close(j.control.done)
		if before != nil {
			<-before
		}
		for _, c := range unused {
			c.Close()
		}
		defer j.converger.Close()
		s.runJob(ctx, j, limit)
	})
}

// openJobRecord opens a record of the history for a job.
func (s *landscapeReconciler) openJobRecord(j *job, at time.Time) {
	j.reporting.isInHistory = true
	s.status.openRecord(landscapev1alpha1.SyncRecord{
		Revision: j.revision.Revision(), Subject: j.revision.Subject, Author: j.revision.Author, Signer: j.revision.Signer,
		Trigger: j.attempt.trigger, StartTime: metav1.NewTime(at),
	})
}

// recordSyncResult processes the result of a sync.
func (s *landscapeReconciler) recordSyncResult(j *job, report *landscape.RunReport, totals map[string]int, err error, late bool, await func(string) bool) {
	if s.jobs.activeJob != j || s.lifetime.ctx.Err() != nil {
		return
	}
	purpose := j.attempt.purpose
	j.isApplying, j.attempt.purpose = false, purposeApply
	now := s.operator.role.Clock.Now()
	revision := j.revision.Revision()
	if err != nil {
		j.addPreviouslyHeld(report, heldByOperator(s.status.desired.Held))
	}
	o := j.baseOutcome(now)
	o.openItems.heldCount, o.openItems.awaitingApproval, o.openItems.heldText = heldCount(report), countAwaitingApproval(report.HeldDeletions()), report.HeldText()
	var forAnyone []string
	o.openItems.operations, forAnyone, o.openItems.expiredOperations = waitingOperations(report)
	if text := joinWithLimit(o.openItems.operations); text != "" && text != joinWithLimit(s.jobs.lastOutcome.openItems.operations) {
		s.notify(notification.Neutral, notification.Warning, operationsReason(o.openItems.operations, o.openItems.expiredOperations), joinWithLimit(forAnyone), o.commit, revision)
	}
	spent, lapsed := s.finishApprovals(j, report, err == nil)
	passed := UsedApprovalsText(spent)
	if len(lapsed) > 0 {
		s.notify(notification.Neutral, notification.Warning, reasonApprovalLapsed, lapsedText(lapsed), o.commit, revision)
	}
	s.updateHeldStatus(restoreHeldReasons(heldDeletionsOf(report, operatorApprovals(s.object, s.status.desired.UsedApprovals)), heldByOperator(s.status.desired.Held)))
	executed := executedText(j, report.Operations, s.status.desired.Operations)
	if len(report.Operations) > 0 {
		s.status.desired.Operations = report.Operations
	}
	s.status.setInventory(totals)
	for _, one := range report.Owners {
		s.recordOwnerConditions(one.Owner, one.Conditions)
	}
	if err != nil {
		o.problems = apply.Problems(err)
		if late {
			o.problems = append([]string{fmt.Sprintf("gave up after %s (spec.timeout)", now.Sub(j.reporting.startedAt).Round(time.Second))}, o.problems...)
		}
		o.failures = s.failuresInRow(o.commitPath)
	}
	same := s.jobs.lastOutcome.commitPath == o.commitPath && joinWithLimit(s.jobs.lastOutcome.problems) == joinWithLimit(o.problems) && s.jobs.lastOutcome.openItems.heldText == o.openItems.heldText
	same = same || purpose.isForAppliedRevision() && err != nil && j.failedAttempts.count > 0 && joinWithLimit(j.failedAttempts.problems) == joinWithLimit(o.problems)
	j.failedAttempts.record(o.problems, now)
	if refused := s.jobs.lastOutcome; purpose == purposeMaintain && refused.failures > 0 && refused.commitPath != o.commitPath {
		// A maintained revision does not replace the rejected one as the last attempt. Otherwise
		// the rejected one would be retried at once.
		refused.openItems = o.openItems
		o = refused
	}
	s.jobs.lastOutcome, s.findings.unrepairedDrift, s.findings.heldRepairs = o, nil, nil
	moves := landscape.PendingMoveSources(err)
	s.jobs.moveSources.Store(&moves)
	result, message := landscapev1alpha1.SyncSucceeded, "there was nothing to write"
	published := ""
	if err == nil {
		published = publishedText(j.takePublishedSeeds())
	}
	switch {
	case !report.Written.IsEmpty():
		message = joinNonEmpty(report.Written.String(), published)
	case published != "":
		message = published
	}
	taken := startedOperations(report)
	asked := joinWithLimit(taken)
	// Also if no object changed.
	if (passed != "" || executed != "" || asked != "") && !j.reporting.isInHistory {
		s.openJobRecord(j, j.reporting.startedAt)
	}
	message = joinNonEmpty(message, passed, executed, asked)
	if text := joinWithLimit(o.openItems.operations); text != "" {
		message += "; " + text
	}
	switch {
	case err != nil:
		result, message = landscapev1alpha1.SyncFailed, joinNonEmpty(passed, asked, joinWithLimit(j.failedAttempts.problems))
	case o.openItems.heldCount > 0:
		result, message = landscapev1alpha1.SyncHeld, message+"; "+o.openItems.heldText
	}
	s.reportSyncResult(j, landscapev1alpha1.SyncRecord{Result: result, Message: message, Changed: int32(report.Changed), Approvals: spent, TakenUp: taken}, same, await)
}

// reportSyncResult records and reports the result of a sync.
func (s *landscapeReconciler) reportSyncResult(j *job, record landscapev1alpha1.SyncRecord, same bool, await func(string) bool) {
	now, revision, commit := s.operator.role.Clock.Now(), j.revision.Revision(), j.revision.Commit
	// A repeated sync gets a record only if it changed something or its result differs.
	if !j.reporting.isInHistory && (record.Changed > 0 || !same && (j.reporting.isLastOperation || record.Result != landscapev1alpha1.SyncSucceeded)) {
		s.openJobRecord(j, j.reporting.startedAt)
	}
	result, message := record.Result, record.Message
	s.status.closeRecord(now, record)
	s.operator.metrics.countSync(s.key, result, now.Sub(j.reporting.startedAt))
	if result == landscapev1alpha1.SyncFailed {
		s.status.setErrors(j.failedAttempts.problems)
		s.status.setOperation(gardencorev1beta1.LastOperationStateError, s.status.progressPercent(), message)
		s.broadcaster.broadcast(commit, receiver.Progress{Time: now, Phase: receiver.PhaseFailed, Message: message, Done: true, Err: message})
		if !same {
			s.notify(notification.Failed, notification.Warning, reasonApplyFailed, message, commit, revision)
		}
		return
	}
	s.status.setErrors(nil)
	s.status.setOperation(gardencorev1beta1.LastOperationStateSucceeded, 100, message)
	s.status.desired.LastAppliedRevision, s.status.desired.LastAppliedPath, s.status.desired.Tried = revision, j.revision.folder, nil
	s.operator.metrics.setLastApplied(s.key, now)
	severity, reason := notification.Info, reasonApplied
	if !await(message) {
		s.recordSeedResults(revision, "")
		phase, text := s.finalPhase(message)
		s.broadcaster.broadcast(commit, receiver.Progress{Time: now, Phase: phase, Message: text, Done: true})
	}
	if result == landscapev1alpha1.SyncHeld {
		severity, reason = notification.Warning, reasonHeld
		message += s.approveCommand()
	}
	if j.reporting.isInHistory && !same || record.Changed > 0 {
		s.notify(notification.Succeeded, severity, reason, message, commit, revision)
	}
}
