package operator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/source/receiver"
)

// start applies a revision, and stops the job of the previous one.
func (s *syncer) start(p *preparation, j *job) {
	now := s.parts.role.Clock.Now()
	ctx, cancel := context.WithCancel(s.life.alive)
	j.attempt, j.told.began = p.attempt, now
	j.control.stop = func() { // marks later failures as the effect of the stop
		j.control.stopped.Store(true)
		cancel()
	}
	before := s.jobs.ending
	s.jobs.ending = nil
	s.found.unhealthy, s.jobs.unkept, s.found.drift, s.found.heldDrift = nil, nil, nil, nil
	if w := s.found.gardenlets; w != nil && w.j.revision.at() == j.revision.at() {
		j.awaits(w.left...)
	}
	s.forgetGardenlets()
	if former := s.jobs.active; former != nil {
		if former.revision.at() == j.revision.at() {
			j.awaits(former.takeWritten()...)
			j.pending.publishedFor, j.tries = former.takePublished(), former.tries
		}
		if former.applying && former.told.record {
			s.status.ended(now, landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncSuperseded, Message: "given up for " + j.revision.Revision()})
			s.parts.metrics.synced(s.key, landscapev1alpha1.SyncSuperseded, now.Sub(former.told.began))
		}
		former.control.stop()
		before = former.control.done
	}
	s.jobs.active = j
	unused := s.tools.clusters.takeFormer()
	if !p.purpose.isFormer() {
		j.told.shown = true
		s.status.operation(gardencorev1beta1.LastOperationStateProcessing, 0, j.progress())
		// A retry is neither announced nor recorded before its result differs.
		if p.trigger != triggerRetry {
			s.begin(j, now)
			s.notify(notification.Pending, notification.Info, reasonReconciling, "applying "+j.revision.Revision(), j.revision.Commit, j.revision.Revision())
		}
		s.hub.tell(j.revision.Commit, receiver.Progress{Time: now, Phase: receiver.PhaseApplying, Message: "applying " + j.revision.Revision()})
	}
	limit := timeout(&s.object.Spec, &j.revision.landscape.Config.Spec)
	s.life.background.Go(func() {
		defer close(j.control.done)
		if before != nil {
			<-before
		}
		for _, c := range unused {
			c.Close()
		}
		defer j.converger.Close()
		s.work(ctx, j, limit)
	})
}

// begin opens a record of the history for a job.
func (s *syncer) begin(j *job, at time.Time) {
	j.told.record = true
	s.status.begun(landscapev1alpha1.SyncRecord{
		Revision: j.revision.Revision(), Subject: j.revision.Subject, Author: j.revision.Author, Signer: j.revision.Signer,
		Trigger: j.attempt.trigger, StartTime: metav1.NewTime(at),
	})
}

// applied processes the result of a sync.
func (s *syncer) applied(j *job, report *landscape.Report, totals map[string]int, err error, late bool, await func(string) bool) {
	if s.jobs.active != j || s.life.alive.Err() != nil {
		return
	}
	purpose := j.attempt.purpose
	j.applying, j.attempt.purpose = false, purposeDue
	now := s.parts.role.Clock.Now()
	revision := j.revision.Revision()
	if err != nil {
		j.addFormer(report, heldHere(s.status.now.Held))
	}
	o := j.outcome(now)
	o.open.held, o.open.waits, o.open.heldText = heldCount(report), waitingForApproval(report.HeldDeletions()), report.HeldText()
	var forAnyone []string
	o.open.operations, forAnyone, o.open.ranOut = waitingOperations(report)
	if text := listed(o.open.operations); text != "" && text != listed(s.jobs.last.open.operations) {
		s.notify(notification.Neutral, notification.Warning, operationsReason(o.open.operations, o.open.ranOut), listed(forAnyone), o.commit, revision)
	}
	spent, lapsed := s.useUp(j, report, err == nil)
	passed := PassedText(spent)
	if len(lapsed) > 0 {
		s.notify(notification.Neutral, notification.Warning, reasonLapsed, lapsedText(lapsed), o.commit, revision)
	}
	s.showHeld(stillHeld(heldOf(report, approvals(s.object, s.status.now.UsedApprovals)), heldHere(s.status.now.Held)))
	executed := executedBy(j, report.Operations, s.status.now.Operations)
	if len(report.Operations) > 0 {
		s.status.now.Operations = report.Operations
	}
	s.status.inventory(totals)
	for _, one := range report.Owners {
		s.cared(one.Owner, one.Conditions)
	}
	if err != nil {
		o.problems = owner.Problems(err)
		if late {
			o.problems = append([]string{fmt.Sprintf("gave up after %s (spec.timeout)", now.Sub(j.told.began).Round(time.Second))}, o.problems...)
		}
		o.failures = s.failuresOf(o.commitAt)
	}
	same := s.jobs.last.commitAt == o.commitAt && listed(s.jobs.last.problems) == listed(o.problems) && s.jobs.last.open.heldText == o.open.heldText
	same = same || purpose.isFormer() && err != nil && j.tries.failures > 0 && listed(j.tries.problems) == listed(o.problems)
	j.tries.note(o.problems, now)
	if refused := s.jobs.last; purpose == purposeKept && refused.failures > 0 && refused.commitAt != o.commitAt {
		// A maintained revision does not replace the rejected one as the last attempt. Otherwise
		// the rejected one would be retried at once.
		refused.open = o.open
		o = refused
	}
	s.jobs.last, s.found.drift, s.found.heldDrift = o, nil, nil
	moves := landscape.MovesFrom(err)
	s.jobs.movesFrom.Store(&moves)
	result, message := landscapev1alpha1.SyncSucceeded, "nothing had to be written"
	published := ""
	if err == nil {
		published = publishedText(j.takePublished())
	}
	switch {
	case !report.Written.IsEmpty():
		message = joined(report.Written.String(), published)
	case published != "":
		message = published
	}
	taken := takenUp(report)
	asked := listed(taken)
	// Also if no object changed.
	if (passed != "" || executed != "" || asked != "") && !j.told.record {
		s.begin(j, j.told.began)
	}
	message = joined(message, passed, executed, asked)
	if text := listed(o.open.operations); text != "" {
		message += "; " + text
	}
	switch {
	case err != nil:
		result, message = landscapev1alpha1.SyncFailed, joined(passed, asked, listed(j.tries.problems))
	case o.open.held > 0:
		result, message = landscapev1alpha1.SyncHeld, message+"; "+o.open.heldText
	}
	s.finish(j, landscapev1alpha1.SyncRecord{Result: result, Message: message, Changed: int32(report.Changed), Approvals: spent, TakenUp: taken}, same, await)
}

// finish records and reports the result of a sync.
func (s *syncer) finish(j *job, record landscapev1alpha1.SyncRecord, same bool, await func(string) bool) {
	now, revision, commit := s.parts.role.Clock.Now(), j.revision.Revision(), j.revision.Commit
	// A repeated sync gets a record only if it changed something or its result differs.
	if !j.told.record && (record.Changed > 0 || !same && (j.told.shown || record.Result != landscapev1alpha1.SyncSucceeded)) {
		s.begin(j, j.told.began)
	}
	result, message := record.Result, record.Message
	s.status.ended(now, record)
	s.parts.metrics.synced(s.key, result, now.Sub(j.told.began))
	if result == landscapev1alpha1.SyncFailed {
		s.status.errors(j.tries.problems)
		s.status.operation(gardencorev1beta1.LastOperationStateError, s.status.progress(), message)
		s.hub.tell(commit, receiver.Progress{Time: now, Phase: receiver.PhaseFailed, Message: message, Done: true, Err: message})
		if !same {
			s.notify(notification.Failed, notification.Warning, reasonApplyFailed, message, commit, revision)
		}
		return
	}
	s.status.errors(nil)
	s.status.operation(gardencorev1beta1.LastOperationStateSucceeded, 100, message)
	s.status.now.LastAppliedRevision, s.status.now.LastAppliedPath, s.status.now.Tried = revision, j.revision.folder, nil
	s.parts.metrics.applied(s.key, now)
	severity, reason := notification.Info, reasonApplied
	if !await(message) {
		s.recordSeeds(revision, "")
		phase, text := s.endsAs(message)
		s.hub.tell(commit, receiver.Progress{Time: now, Phase: phase, Message: text, Done: true})
	}
	if result == landscapev1alpha1.SyncHeld {
		severity, reason = notification.Warning, reasonHeld
		message += s.toApprove()
	}
	if j.told.record && !same || record.Changed > 0 {
		s.notify(notification.Succeeded, severity, reason, message, commit, revision)
	}
}
