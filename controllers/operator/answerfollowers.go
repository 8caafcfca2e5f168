// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// answerFollowers completes the requests that follow any sync, not a certain commit, when their
// poll finds nothing new. They get the result of the last sync.
func (s *landscapeReconciler) answerFollowers() {
	if !s.requests.isPollDone {
		return
	}
	if s.sourceAccess.pollErr != nil { // a preparation at this time only maintains what is applied
		s.requests.isPollDone = false
		failed := receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseFailed, Done: true, Err: s.sourceAccess.pollErr.Error() + s.currentRevisionText()}
		if source.IsPermanent(s.sourceAccess.pollErr) {
			// followers of a pushed commit, too: it cannot be fetched
			s.broadcaster.broadcastToAll(failed)
			return
		}
		s.broadcaster.broadcast("", failed)
		return
	}
	if s.jobs.preparation != nil && s.jobs.preparation.purpose.isForAppliedRevision() {
		return
	}
	s.requests.isPollDone = false
	if s.findings.gardenletWaiter != nil && s.jobs.lastOutcome.failures == 0 {
		return // followers get the result of the gardenlets
	}
	// Otherwise the end of the running sync completes them.
	if s.jobs.preparation == nil && (s.jobs.activeJob == nil || !s.jobs.activeJob.isApplying) {
		s.broadcaster.broadcast("", s.lastResult())
	}
}

// lastResult returns the result of the last sync.
func (s *landscapeReconciler) lastResult() receiver.Progress {
	out := receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseApplied, Done: true, Message: "the source has nothing new; " + s.jobs.lastOutcome.revision + " is already applied"}
	fail := func(text string) receiver.Progress {
		out.Phase, out.Message, out.Err = receiver.PhaseFailed, "", text
		return out
	}
	if text := joinWithLimit(s.jobs.lastOutcome.openItems.operations); text != "" {
		out.Message += "; " + text
	}
	switch {
	case s.jobs.lastOutcome.validErr != nil:
		return fail(s.jobs.lastOutcome.validErr.Error() + s.currentRevisionText())
	case s.jobs.lastOutcome.fetchErr != nil:
		return fail(s.jobs.lastOutcome.fetchErr.Error() + s.currentRevisionText())
	case len(s.jobs.lastOutcome.problems) > 0:
		return fail(joinWithLimit(s.jobs.lastOutcome.problems))
	case s.jobs.maintainFailure != nil && s.jobs.activeJob == nil:
		return fail(conditionInput{revisions: revisionNames{applied: s.appliedRevisionName()}, lastSync: lastSyncState{maintainErr: s.jobs.maintainFailure.err}}.notMaintainedText())
	}
	if s.jobs.lastOutcome.openItems.heldCount > 0 || len(s.findings.heldOnSeeds) > 0 {
		out.Phase, out.Message = receiver.PhaseHeld, joinNonEmpty(out.Message, s.heldText())+s.approveCommand()
	}
	return out
}

// currentRevisionText names the revision in force while a newer one cannot be applied, whether it
// is partial or unmaintained. It is empty if there is none.
func (s *landscapeReconciler) currentRevisionText() string {
	return conditionInput{revisions: revisionNames{applied: s.appliedRevisionName(), partial: s.partialRevisionName()}, lastSync: lastSyncState{maintainErr: s.maintainError()}}.currentRevisionText()
}

// answerFinishedFollowers answers followers of a commit whose sync is already over.
func (s *landscapeReconciler) answerFinishedFollowers(commit string) {
	if commit == "" || s.jobs.lastOutcome.commitPath != s.specCommitPath(commit) || s.jobs.preparation != nil || s.jobs.activeJob != nil && s.jobs.activeJob.isApplying || s.findings.gardenletWaiter != nil && s.jobs.lastOutcome.failures == 0 {
		return
	}
	if s.jobs.lastOutcome.failures > 0 && !s.jobs.lastOutcome.isPermanent && s.jobs.lastOutcome.validErr == nil {
		return // it is retried
	}
	s.broadcaster.broadcast(commit, s.lastResult())
}
