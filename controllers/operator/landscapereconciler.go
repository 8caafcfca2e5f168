// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// landscapeReconciler reconciles one Landscape. Its fields belong to the goroutine of run.
// Background goroutines send their results as functions (post).
type landscapeReconciler struct {
	operator     *runningOperator
	key          receiver.Key
	broadcaster  *progressBroadcaster
	stepRequests chan struct{}
	callbacks    chan func()
	lifetime     lifetime

	object       *landscapev1alpha1.Landscape
	status       *statusWriter
	sourceAccess sourceState
	requests     pendingRequests
	faults       objectFaults
	shared       sharedResources
	jobs         jobs
	findings     clusterFindings
}

// runUntilDeleted works until the context ends or the Landscape no longer exists.
func (s *landscapeReconciler) runUntilDeleted(ctx context.Context) {
	s.lifetime.ctx, s.lifetime.cancel = context.WithCancel(ctx)
	defer s.shutDown()
	timer := s.operator.role.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-s.stepRequests:
		case f := <-s.callbacks:
			f()
		}
		next, gone := s.reconcileOnce()
		if gone {
			s.status.object = nil // a recreated object has its own status
			return
		}
		if s.status.writeIfChanged(ctx) {
			s.operator.role.Log.Info("another writer changed the status; the operator drops its state in memory and starts over", "landscape", s.key.String())
			s.status.object = nil
			return
		}
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		timer.Reset(s.sleepDuration(next))
	}
}

// maxSleep is the maximum sleep of an idle syncer.
const maxSleep = time.Hour

func (s *landscapeReconciler) sleepDuration(next time.Time) time.Duration {
	if next.IsZero() {
		return maxSleep
	}
	return min(max(next.Sub(s.operator.role.Clock.Now()), 0), maxSleep)
}

// enqueue runs a function in the syncer's goroutine, later.
func (s *landscapeReconciler) enqueue(f func()) {
	select {
	case s.callbacks <- f:
	case <-s.lifetime.ctx.Done():
	}
}

// queryReconciler runs a question in the syncer's goroutine for background goroutines. It returns
// other once the syncer has ended.
func queryReconciler[T any](s *landscapeReconciler, other T, question func() T) T {
	answer := make(chan T, 1)
	s.enqueue(func() { answer <- question() })
	select {
	case given := <-answer:
		return given
	case <-s.lifetime.ctx.Done():
		return other
	}
}

// requestStep triggers a step.
func (s *landscapeReconciler) requestStep() {
	select {
	case s.stepRequests <- struct{}{}:
	default:
	}
}

// shutDown stops everything. The clusters stay unchanged.
func (s *landscapeReconciler) shutDown() {
	s.lifetime.cancel()
	s.closeSource()
	s.lifetime.background.Wait()
	s.shared.tokens.Close()
	if s.sourceAccess.previousClosed != nil {
		<-s.sourceAccess.previousClosed
	}
	s.shared.clusters.close()
	s.status.recordInterruption(s.operator.role.Clock.Now())
}

// reconcileOnce does the due work, and returns when to run next.
func (s *landscapeReconciler) reconcileOnce() (next time.Time, gone bool) {
	object, err := s.operator.landscapeOf(s.key)
	if err != nil || object == nil || object.DeletionTimestamp != nil {
		return time.Time{}, err == nil
	}
	// A recreated object makes the memory obsolete.
	if s.object != nil && s.object.UID != object.UID {
		return time.Time{}, true
	}
	s.object = object
	if s.status.setObject(object) {
		s.findings.heldOnSeeds = heldByGardenlets(s.status.desired.Held)
	}
	now := s.operator.role.Clock.Now()
	if want := object.Annotations[landscapev1alpha1.AnnotationSyncRequested]; want != "" && want != s.status.desired.LastHandledSyncRequest {
		s.status.desired.LastHandledSyncRequest = want
		s.requests.syncRequested, s.requests.pollRequested, s.requests.awaitsPoll = true, true, true
	}
	s.faults.misconfiguration = s.misconfiguration(now)
	suspended, until := s.suspension(now)
	if suspended != "" || s.faults.misconfiguration != "" {
		if suspended != "" {
			s.stopJobs()
		}
		s.jobs.decision = decision{waitReason: suspended, nextCheck: until}
		if suspended == "" {
			until = earlierTime(until, s.maintainOnly(now))
		}
		s.reportStatus(suspended)
		return until, false
	}
	next = s.openSource(now)
	if s.sourceAccess.remote == nil {
		s.jobs.decision = decision{}
		s.answerFollowers()
		s.reportStatus("")
		return next, false
	}
	if !s.sourceAccess.remote.isOffline {
		next = s.pollSource(now)
	}
	s.jobs.decision = decideSync(s.currentSyncInput(now))
	next = earlierTime(next, s.executeDecision(now))
	s.answerFollowers()
	s.reportStatus("")
	return earlierTime(next, s.jobs.decision.nextCheck), false
}

// misconfiguration returns the error in the object itself, or "" for none.
func (s *landscapeReconciler) misconfiguration(now time.Time) string {
	spec := &s.object.Spec
	if spec.Source == nil {
		return "spec.source is not set: set the repository to sync from"
	}
	if !s.isSourceAllowed() {
		return "spec.source.url: repositories on the operator's machine are not allowed: start the operator with --allow-file-sources, or serve the repository"
	}
	if _, err := windowStateAt(now, spec.Windows); err != nil {
		return err.Error()
	}
	if taken := s.nameConflict(); taken != "" {
		return taken
	}
	if circle := s.operator.dependencyCycle(s.object); circle != "" {
		return "spec.dependsOn has a cycle: " + circle
	}
	return ""
}

// isSourceAllowed reports whether the operator may read the source.
func (s *landscapeReconciler) isSourceAllowed() bool {
	return s.operator.role.FileSources || !strings.HasPrefix(s.object.Spec.Source.URL, "file://")
}

// nameConflict returns why the name belongs to another Landscape, or "" if it does not. Inventories
// have the name alone: a takeover deletes the objects of the other Landscape. So it needs a
// request, even if the other no longer exists.
func (s *landscapeReconciler) nameConflict() string {
	twin := s.operator.conflictingNameOwner(s.object)
	ready := condition.Get(s.status.desired.Conditions, landscapev1alpha1.LandscapeReady)
	s.faults.isNameTaken = true
	switch {
	case twin != "":
		s.requests.syncRequested = false
		return fmt.Sprintf("Landscape %s already has this name, and the inventories in the cluster have only the name; give this Landscape another one", twin)
	case ready != nil && ready.Reason == reasonNameTaken && !s.requests.syncRequested:
		return "the other Landscape of this name no longer exists, but its inventory does. " +
			"A sync adopts its objects and deletes undeclared ones: give this Landscape another name, or run pergola sync if it replaces the other"
	}
	s.faults.isNameTaken = false
	return ""
}

// suspension returns why nothing is done, and until when.
func (s *landscapeReconciler) suspension(now time.Time) (string, time.Time) {
	why := s.object.Spec.SuspensionAt(now)
	if why == nil {
		return "", time.Time{}
	}
	text := "suspended"
	var until time.Time
	if why.By != "" {
		text += " by " + why.By
	}
	if why.Until != nil {
		until = why.Until.Time
		text += " until " + until.UTC().Format(time.RFC3339)
	}
	if why.Reason != "" {
		text += ": " + why.Reason
	}
	return text, until
}

// stopJobs stops all work.
func (s *landscapeReconciler) stopJobs() {
	s.cancelPreparation()
	if s.jobs.activeJob != nil {
		s.jobs.activeJob.control.stop()
		if s.jobs.activeJob.isApplying {
			s.status.closeRecord(s.operator.role.Clock.Now(), landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "suspended while it was applied"})
		}
		s.cancelGardenletWait()
		s.jobs.pausedDone, s.jobs.activeJob = s.jobs.activeJob.control.done, nil
		s.jobs.lastOutcome.commitPath = commitPath{} // apply it after the pause
	}
}

// nextPoll returns the time of the next regular poll.
func (s *landscapeReconciler) nextPoll() time.Time {
	return s.sourceAccess.polledAt.Add(withJitter(pollInterval(&s.object.Spec), jitterShareOf(s.key.String())))
}

func (s *landscapeReconciler) isPollDue(now time.Time) bool {
	return s.requests.pollRequested || !now.Before(s.nextPoll())
}

// pollSource polls the source in the background if that is due, and returns the time of the next
// poll.
func (s *landscapeReconciler) pollSource(now time.Time) time.Time {
	if s.sourceAccess.isPolling {
		return time.Time{}
	}
	if !s.isPollDue(now) {
		return s.nextPoll()
	}
	s.sourceAccess.isPolling, s.requests.isPollRunning, s.requests.pollRequested = true, s.requests.pollRequested, false
	remote := s.sourceAccess.remote
	s.lifetime.background.Go(func() {
		head, err := remote.Resolve(s.lifetime.ctx)
		s.enqueue(func() { s.recordPollResult(remote, head, err) })
	})
	return time.Time{}
}

// recordPollResult processes the result of a poll.
func (s *landscapeReconciler) recordPollResult(remote *sourceConnection, head source.Head, err error) {
	if remote != s.sourceAccess.remote || s.lifetime.ctx.Err() != nil {
		return
	}
	s.sourceAccess.isPolling = false
	if s.requests.isPollRunning {
		s.requests.isPollDone, s.requests.awaitsPoll = true, s.requests.pollRequested && s.requests.awaitsPoll
	}
	s.sourceAccess.polledAt = s.operator.role.Clock.Now()
	s.operator.metrics.countPoll(s.key, err)
	if err != nil {
		s.reportSourceFailure(err)
		return
	}
	s.sourceAccess.pollErr = nil
	if head.Commit != s.sourceAccess.head.Commit && s.sourceAccess.head.Commit != "" {
		s.operator.role.Log.Info("the source has a new revision", "landscape", s.key.String(), "revision", head.Revision())
	}
	s.sourceAccess.head = head
	s.sourceAccess.newest.Store(&newestCommit{commit: head.Commit, knownAt: s.sourceAccess.polledAt})
}

// newestCommit is the head of the source at the last poll.
type newestCommit struct {
	commit  string
	knownAt time.Time
}

// newestTimeOf returns a function for other goroutines. It returns when a commit was last known to
// be the newest.
func (s *landscapeReconciler) newestTimeOf(commit string) func() time.Time {
	began := s.operator.role.Clock.Now()
	return func() time.Time {
		if n := s.sourceAccess.newest.Load(); n != nil && n.commit == commit {
			return n.knownAt
		}
		return began
	}
}

// wantedCommit returns the commit to apply.
func (s *landscapeReconciler) wantedCommit() (commit string, pinned bool) {
	if pin := s.object.Spec.Pin; pin != nil {
		return pin.Revision, true
	}
	return s.sourceAccess.head.Commit, false
}

// specCommitPath returns a commit with the folder in the spec.
func (s *landscapeReconciler) specCommitPath(commit string) commitPath {
	return commitPath{commit: commit, folder: folderOf(s.object)}
}

// commitToApply returns the commit to apply: the wanted one. While the source cannot be polled, it
// is the maintained one, which is still applied at its interval.
func (s *landscapeReconciler) commitToApply() (commit string, pinned bool, purpose purpose) {
	if commit, pinned = s.wantedCommit(); commit == "" && s.sourceAccess.pollErr != nil && s.jobs.activeJob != nil {
		return s.jobs.activeJob.revision.Commit, false, purposeReapply
	}
	return commit, pinned, purposeApply
}

// currentSyncInput returns the input of decide.
func (s *landscapeReconciler) currentSyncInput(now time.Time) syncInput {
	wanted, pinned, purpose := s.commitToApply()
	return s.syncInputFor(now, wanted, pinned, purpose)
}

// syncInputFor returns the input of decide for a commit and a purpose.
func (s *landscapeReconciler) syncInputFor(now time.Time, wanted string, pinned bool, purpose purpose) syncInput {
	object := s.object
	if purpose.isForAppliedRevision() {
		object = s.maintainedObject()
	}
	spec := &object.Spec
	out := syncInput{
		now: now, commits: knownCommits{wanted: wanted, isPinned: pinned, attempted: s.jobs.lastOutcome.commit},
		syncReasons: syncReasons{syncRequested: s.requests.syncRequested && (!s.requests.awaitsPoll || s.sourceAccess.remote.isOffline), operationRequested: s.requests.operationRequested},
		failures:    s.jobs.lastOutcome.failures, isPermanent: s.jobs.lastOutcome.isPermanent || s.jobs.lastOutcome.validErr != nil, timing: syncTiming{lastEnd: s.jobs.lastOutcome.endedAt, interval: syncInterval(spec), retryInterval: retryInterval(spec), jitterShare: jitterShareOf(s.key.String())},
		blockReason: s.dependencyBlocker(s.object),
	}
	// After an attempt, going back to the applied revision is a change, too.
	if applied := appliedCommitPath(&s.status.desired); len(s.status.desired.Tried) == 0 && applied.folder == folderOf(object) {
		out.commits.applied = applied.commit
	}
	// Both lists were validated before.
	out.timing.windows, _ = windowStateAt(now, spec.Windows, s.status.desired.Windows)
	head, former, stated := s.jobs.lastOutcome.head, s.jobs.lastOutcome.spec, specOf(object)
	out.syncReasons.specChanged = s.jobs.lastOutcome.commit != "" && former != stated || s.jobs.lastOutcome.fetchErr != nil && s.jobs.lastOutcome.secretsDigest != s.sourceAccess.remote.secretsDigest ||
		s.jobs.lastOutcome.validErr != nil && s.jobs.lastOutcome.windowsDigest != jsonDigest(spec.Windows)
	switch {
	case s.jobs.preparation != nil && (purpose.isForAppliedRevision() || !s.jobs.preparation.purpose.isForAppliedRevision()):
		head, former = s.jobs.preparation.head, s.jobs.preparation.spec
		out.commits.attempted, out.isBusy, out.syncReasons.specChanged = s.jobs.preparation.commit, true, former != stated
	case s.jobs.activeJob != nil && s.jobs.activeJob.isApplying && (purpose.isForAppliedRevision() || !s.jobs.activeJob.attempt.purpose.isForAppliedRevision()):
		head, former = s.jobs.activeJob.attempt.head, s.jobs.activeJob.attempt.spec
		out.commits.attempted, out.isBusy, out.syncReasons.specChanged = s.jobs.activeJob.revision.Commit, true, former != stated
	}
	out.syncReasons.onlyApprovalsChanged = former.otherDigest == stated.otherDigest && former.approvalsDigest != stated.approvalsDigest
	out.commits.isRetagged = !pinned && out.commits.attempted != "" && out.commits.attempted == s.sourceAccess.head.Commit && head.Name != "" && head != s.sourceAccess.head
	return out
}

// executeDecision starts the decided work. It returns when to check again, or zero if other code
// decides that.
func (s *landscapeReconciler) executeDecision(now time.Time) time.Time {
	d := s.jobs.decision
	commit, _, purpose := s.commitToApply()
	switch {
	case d.trigger == "":
		if p := s.jobs.preparation; p != nil && p.purpose == purposeApply && d.waitReason != "" {
			// A window closed meanwhile, or a dependency is no longer ready.
			s.cancelPreparation()
		}
		next := s.maintainCurrent(now)
		if d.waitReason != "" {
			next = earlierTime(next, s.validateWaiting(commit, now))
		}
		return next
	case slices.Contains([]string{triggerInterval, triggerRequest, triggerOperation}, d.trigger) && s.jobs.lastOutcome.failures == 0 && s.jobs.activeJob != nil && !s.jobs.activeJob.isApplying && s.jobs.activeJob.revision.Commit == commit:
		s.requests.syncRequested, s.requests.operationRequested = false, false
		s.jobs.activeJob.reapply(d.trigger, now)
	default:
		s.requests.syncRequested, s.requests.operationRequested = false, false
		s.startPreparation(commit, d.trigger, purpose)
	}
	return time.Time{}
}

// dependencyBlocker returns which Landscape this one waits for, or "" for none.
func (s *landscapeReconciler) dependencyBlocker(object *landscapev1alpha1.Landscape) string {
	for _, d := range object.Spec.DependsOn {
		other, err := s.operator.landscapeOf(receiver.Key{Namespace: object.Namespace, Name: d.Name})
		switch {
		case err != nil:
			return fmt.Sprintf("waiting for Landscape %s, which cannot be read: %v", d.Name, err)
		case other == nil:
			return fmt.Sprintf("waiting for Landscape %s, which does not exist (spec.dependsOn)", d.Name)
		}
		if why := notReadyReason(other); why != "" && !s.operator.isWaitingForMovesFrom(other, object.Name) {
			return fmt.Sprintf("waiting for Landscape %s: %s", d.Name, why)
		}
	}
	return ""
}
