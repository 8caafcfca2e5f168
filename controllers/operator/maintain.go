// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/internal/backoff"
	"github.com/pergola-dev/pergola/source"
)

// maintainFailure is why the revision that an earlier process applied is not maintained by this
// one.
type maintainFailure struct {
	commit string
	err    error
	// failures counts failures in a row. The last one was at the time at.
	failures int
	failedAt time.Time
}

// maxTriedRevisions is how many revisions attempted since the last complete sync stay in the
// status, besides the current one.
const maxTriedRevisions = 5

// commitPath is a commit and the landscape's folder in it. The same commit declares something else
// in another folder.
type commitPath struct{ commit, folder string }

// triedCommitPath returns the commit and folder of an attempted revision.
func triedCommitPath(tried landscapev1alpha1.TriedRevision) commitPath {
	return commitPath{commit: commitOf(tried.Revision), folder: tried.Path}
}

// appliedCommitPath returns the commit and folder of the last complete sync, the zero value for
// none.
func appliedCommitPath(status *landscapev1alpha1.LandscapeStatus) commitPath {
	if status.LastAppliedRevision == "" {
		return commitPath{}
	}
	return commitPath{commit: commitOf(status.LastAppliedRevision), folder: status.LastAppliedPath}
}

// otherTriedRevisions returns the other attempted revisions, at most maxTriedRevisions. The result
// is the same before and after one is recorded.
func otherTriedRevisions(tried []landscapev1alpha1.TriedRevision, one commitPath) []landscapev1alpha1.TriedRevision {
	beside := slices.DeleteFunc(slices.Clone(tried), func(other landscapev1alpha1.TriedRevision) bool { return triedCommitPath(other) == one })
	return beside[max(len(beside)-maxTriedRevisions, 0):]
}

// recordTried records, before the first request, that a revision is attempted, and reports whether
// that succeeded. After a restart the operator must know that the clusters may contain parts of it.
func (s *landscapeReconciler) recordTried(r *revision) bool {
	now := &s.status.desired
	windows := r.landscape.Config.Spec.Windows
	if s.maintainedCommitPath() == r.commitPath() && equality.Semantic.DeepEqual(now.Windows, windows) {
		return true
	}
	before := *now
	if s.maintainedCommitPath() != r.commitPath() {
		now.Tried = append(otherTriedRevisions(now.Tried, r.commitPath()), landscapev1alpha1.TriedRevision{Revision: r.Revision(), Path: r.folder})
	}
	now.Windows = windows
	// If someone else wrote the status, the next step ends this syncer.
	s.status.writeIfChanged(s.lifetime.ctx)
	if written := &s.status.written; slices.Equal(written.Tried, now.Tried) && equality.Semantic.DeepEqual(written.Windows, now.Windows) {
		return true
	}
	now.Tried, now.Windows = before.Tried, before.Windows
	return false
}

// copyStatusTo copies the current status into a copy of the object. The written status may be
// older.
func (s *landscapeReconciler) copyStatusTo(object *landscapev1alpha1.Landscape) {
	now := &s.status.desired
	object.Status.UsedApprovals, object.Status.Tried = slices.Clone(now.UsedApprovals), slices.Clone(now.Tried)
	object.Status.LastAppliedRevision, object.Status.LastAppliedPath = now.LastAppliedRevision, now.LastAppliedPath
}

// maintainedRevision returns the revision to maintain while a newer one cannot be applied: the last
// attempted one, or else the applied one. The result is empty for none.
func (s *landscapeReconciler) maintainedRevision() string {
	if tried := s.status.desired.Tried; len(tried) > 0 {
		return tried[len(tried)-1].Revision
	}
	return s.status.desired.LastAppliedRevision
}

// maintainedCommitPath returns the commit and folder of former.
func (s *landscapeReconciler) maintainedCommitPath() commitPath {
	if tried := s.status.desired.Tried; len(tried) > 0 {
		return triedCommitPath(tried[len(tried)-1])
	}
	return appliedCommitPath(&s.status.desired)
}

// maintainedObject returns the object with the folder of the maintained revision.
func (s *landscapeReconciler) maintainedObject() *landscapev1alpha1.Landscape {
	at := s.maintainedCommitPath()
	if s.jobs.activeJob != nil {
		at = s.jobs.activeJob.revision.commitPath()
	}
	if at.folder == folderOf(s.object) {
		return s.object
	}
	out := s.object.DeepCopy()
	out.Spec.Source.Path = at.folder
	return out
}

// partialRevision returns the last attempted revision if its sync did not complete; else empty.
func (s *landscapeReconciler) partialRevision() string {
	if len(s.status.desired.Tried) == 0 {
		return ""
	}
	return s.maintainedRevision()
}

// revisionName returns a revision as people read it: with its folder if that differs from the spec.
func (s *landscapeReconciler) revisionName(revision, folder string) string {
	if revision == "" || folder == "" || folder == folderOf(s.object) {
		return revision
	}
	return revision + " (folder " + folder + ")"
}

// sourceRevisionOf returns a commit under the name of the source's head, if the head is at that
// commit.
func (s *landscapeReconciler) sourceRevisionOf(commit string) string {
	if s.sourceAccess.head.Commit == commit {
		return s.sourceAccess.head.Revision()
	}
	return commit
}

// appliedRevisionName returns the last completely applied revision as people read it.
func (s *landscapeReconciler) appliedRevisionName() string {
	return s.revisionName(s.status.desired.LastAppliedRevision, s.status.desired.LastAppliedPath)
}

// partialRevisionName returns partialRevision as people read it.
func (s *landscapeReconciler) partialRevisionName() string {
	return s.revisionName(s.partialRevision(), s.maintainedCommitPath().folder)
}

// maintainError returns why the applied revision is not maintained now, else nil.
func (s *landscapeReconciler) maintainError() error {
	if u := s.jobs.maintainFailure; u != nil && s.jobs.activeJob == nil && u.commit == commitOf(s.maintainedRevision()) {
		return u.err
	}
	return nil
}

// partialRetryBlocker returns why the last attempted revision must not be retried now, or nil if it
// may, or if it is complete. Maintaining a partial revision continues it, and going back to the
// revision before reverts Git.
func (s *landscapeReconciler) partialRetryBlocker(now time.Time) error {
	tried := s.partialRevision()
	if tried == "" {
		return nil
	}
	why := s.dependencyBlocker(s.object)
	if pin := s.object.Spec.Pin; pin != nil && pin.Revision != commitOf(tried) {
		why = "the Landscape is pinned to another revision"
	} else if windows, err := windowStateAt(now, s.object.Spec.Windows, s.status.desired.Windows); err != nil {
		why = err.Error()
	} else if !windows.isOpen {
		why = "no window is open"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("a later sync of %s did not complete and cannot continue: %s", s.partialRevisionName(), why)
}

// maintainOnly maintains the last applied revision, also after a restart, while the object itself
// is wrong. It applies nothing newer, and returns when to check again.
func (s *landscapeReconciler) maintainOnly(now time.Time) time.Time {
	switch {
	case s.faults.isNameTaken: // the status under this name belongs to another Landscape
		return time.Time{}
	case s.object.Spec.Source == nil || !s.isSourceAllowed():
		if s.jobs.activeJob == nil && s.jobs.maintainFailure == nil && s.maintainedRevision() != "" {
			s.recordMaintainFailure(commitOf(s.maintainedRevision()), errors.New(s.faults.misconfiguration), now)
		}
		return time.Time{}
	}
	next := s.openSource(now)
	if s.sourceAccess.remote == nil {
		return next
	}
	if !s.sourceAccess.remote.isOffline {
		next = s.pollSource(now)
	}
	if s.jobs.activeJob == nil {
		return earlierTime(next, s.maintainCurrent(now))
	}
	// A rejected revision is not retried meanwhile.
	if s.jobs.lastOutcome.commitPath != s.jobs.activeJob.revision.commitPath() {
		return earlierTime(next, s.retryPartial(now))
	}
	if s.jobs.preparation != nil || s.jobs.activeJob.isApplying || s.partialRetryBlocker(now) != nil {
		return next
	}
	commit := s.jobs.activeJob.revision.Commit
	situation := s.syncInputFor(now, commit, false, purposeMaintain)
	situation.blockReason, situation.timing.windows = "", windowState{isOpen: true}
	d := decideSync(situation)
	switch {
	case d.trigger == "":
		return earlierTime(next, d.nextCheck)
	case s.jobs.lastOutcome.failures == 0 && d.trigger == triggerInterval:
		s.jobs.activeJob.reapply(d.trigger, now)
	default:
		s.startPreparation(commit, d.trigger, purposeMaintain)
	}
	return next
}

// maintainCurrent maintains the last applied revision after a restart while a newer one cannot be
// applied. It returns when to retry.
func (s *landscapeReconciler) maintainCurrent(now time.Time) time.Time {
	if s.jobs.activeJob != nil {
		return s.retryPartial(now)
	}
	if s.jobs.preparation != nil || s.maintainedRevision() == "" {
		return time.Time{}
	}
	commit := commitOf(s.maintainedRevision())
	if wanted, _ := s.wantedCommit(); s.maintainedCommitPath() == s.jobs.lastOutcome.commitPath || wanted == "" && s.sourceAccess.pollErr == nil && s.faults.misconfiguration == "" {
		return time.Time{}
	}
	if u := s.jobs.maintainFailure; u != nil && u.commit == commit {
		if again := s.nextRetryAfter(u.failedAt, u.failures); now.Before(again) {
			return again
		}
	}
	if err := s.partialRetryBlocker(now); err != nil {
		s.recordMaintainFailure(commit, err, now)
		return time.Time{}
	}
	s.startPreparation(commit, triggerInterval, purposeMaintain)
	return time.Time{}
}

// nextRetryAfter returns the time of the next retry after so many failures in a row.
func (s *landscapeReconciler) nextRetryAfter(failed time.Time, failures int) time.Time {
	spec := &s.object.Spec
	return failed.Add(backoff.Delay(failures, retryInterval(spec), max(syncInterval(spec), retryInterval(spec))))
}

// failedAttempts counts the failed attempts of a commit in a row.
type failedAttempts struct {
	count    int
	problems []string
	// endedAt is the end of the last attempt.
	endedAt time.Time
}

// record counts an attempt. Without problems it was complete.
func (t *failedAttempts) record(problems []string, now time.Time) {
	failures := t.count + 1
	if len(problems) == 0 {
		failures = 0
	}
	*t = failedAttempts{count: failures, problems: problems, endedAt: now}
}

// retryPartial retries the maintained partial revision while a newer one is rejected. The newer one
// is the last attempt, so no other retry covers the partial one. It also runs when someone approves
// its held deletions. It returns when to check again.
func (s *landscapeReconciler) retryPartial(now time.Time) time.Time {
	j := s.jobs.activeJob
	trigger := triggerRetry
	if j.attempt.spec.approvalsDigest != specOf(s.object).approvalsDigest {
		trigger = triggerApproval
	} else if j.failedAttempts.count == 0 {
		return time.Time{}
	}
	if s.jobs.preparation != nil || j.isApplying || s.jobs.lastOutcome.commitPath == j.revision.commitPath() || s.partialRetryBlocker(now) != nil || s.dependencyBlocker(s.object) != "" {
		return time.Time{}
	}
	if again := s.nextRetryAfter(j.failedAttempts.endedAt, j.failedAttempts.count); j.failedAttempts.count > 0 && now.Before(again) {
		return again
	}
	s.startPreparation(j.revision.Commit, trigger, purposeMaintain)
	return time.Time{}
}

// recordMaintainFailure records why the last applied revision cannot be maintained. It notifies
// once per error.
func (s *landscapeReconciler) recordMaintainFailure(commit string, err error, now time.Time) {
	former := s.jobs.maintainFailure
	s.jobs.maintainFailure = &maintainFailure{commit: commit, err: err, failures: 1, failedAt: now}
	if former != nil && former.commit == commit {
		s.jobs.maintainFailure.failures = former.failures + 1
		if former.err.Error() == err.Error() {
			return
		}
	}
	applied := s.status.desired.LastAppliedRevision
	s.notify(notification.Neutral, notification.Warning, reasonNotMaintained, conditionInput{revisions: revisionNames{applied: s.appliedRevisionName()}, lastSync: lastSyncState{maintainErr: err}}.notMaintainedText(), "", applied)
}

// parseAppliedHead returns an applied revision under its name at that time.
func parseAppliedHead(applied, commit string) source.Head {
	if head, err := source.ParseRevision(applied); err == nil && head.Commit == commit {
		return head
	}
	return source.Head{Commit: commit}
}
