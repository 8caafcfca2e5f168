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

// unkept is why the revision that an earlier process applied is not maintained by this one.
type unkept struct {
	commit string
	err    error
	// failures counts failures in a row. The last one was at the time at.
	failures int
	at       time.Time
}

// mostTried is how many revisions attempted since the last complete sync stay in the status,
// besides the current one.
const mostTried = 5

// commitAt is a commit and the landscape's folder in it. The same commit declares something else in
// another folder.
type commitAt struct{ commit, folder string }

// triedAt returns the commit and folder of an attempted revision.
func triedAt(tried landscapev1alpha1.TriedRevision) commitAt {
	return commitAt{commit: commitOf(tried.Revision), folder: tried.Path}
}

// appliedAt returns the commit and folder of the last complete sync, the zero value for none.
func appliedAt(status *landscapev1alpha1.LandscapeStatus) commitAt {
	if status.LastAppliedRevision == "" {
		return commitAt{}
	}
	return commitAt{commit: commitOf(status.LastAppliedRevision), folder: status.LastAppliedPath}
}

// triedBeside returns the other attempted revisions, at most mostTried. The result is the same
// before and after one is recorded.
func triedBeside(tried []landscapev1alpha1.TriedRevision, one commitAt) []landscapev1alpha1.TriedRevision {
	beside := slices.DeleteFunc(slices.Clone(tried), func(other landscapev1alpha1.TriedRevision) bool { return triedAt(other) == one })
	return beside[max(len(beside)-mostTried, 0):]
}

// noteTried records, before the first request, that a revision is attempted, and reports whether
// that succeeded. After a restart the operator must know that the clusters may contain parts of it.
func (s *syncer) noteTried(r *revision) bool {
	now := &s.status.now
	windows := r.landscape.Config.Spec.Windows
	if s.formerAt() == r.at() && equality.Semantic.DeepEqual(now.Windows, windows) {
		return true
	}
	before := *now
	if s.formerAt() != r.at() {
		now.Tried = append(triedBeside(now.Tried, r.at()), landscapev1alpha1.TriedRevision{Revision: r.Revision(), Path: r.folder})
	}
	now.Windows = windows
	// If somebody else wrote the status, the next step ends this syncer.
	s.status.flush(s.life.alive)
	if written := &s.status.written; slices.Equal(written.Tried, now.Tried) && equality.Semantic.DeepEqual(written.Windows, now.Windows) {
		return true
	}
	now.Tried, now.Windows = before.Tried, before.Windows
	return false
}

// refresh copies the current status into a copy of the object. The written status may be older.
func (s *syncer) refresh(object *landscapev1alpha1.Landscape) {
	now := &s.status.now
	object.Status.UsedApprovals, object.Status.Tried = slices.Clone(now.UsedApprovals), slices.Clone(now.Tried)
	object.Status.LastAppliedRevision, object.Status.LastAppliedPath = now.LastAppliedRevision, now.LastAppliedPath
}

// former returns the revision to maintain while a newer one cannot be applied: the last attempted
// one, or else the applied one; empty for none.
func (s *syncer) former() string {
	if tried := s.status.now.Tried; len(tried) > 0 {
		return tried[len(tried)-1].Revision
	}
	return s.status.now.LastAppliedRevision
}

// formerAt returns the commit and folder of former.
func (s *syncer) formerAt() commitAt {
	if tried := s.status.now.Tried; len(tried) > 0 {
		return triedAt(tried[len(tried)-1])
	}
	return appliedAt(&s.status.now)
}

// keptObject returns the object with the folder of the maintained revision.
func (s *syncer) keptObject() *landscapev1alpha1.Landscape {
	at := s.formerAt()
	if s.jobs.active != nil {
		at = s.jobs.active.revision.at()
	}
	if at.folder == folderOf(s.object) {
		return s.object
	}
	out := s.object.DeepCopy()
	out.Spec.Source.Path = at.folder
	return out
}

// halfApplied returns the last attempted revision if its sync did not complete; else empty.
func (s *syncer) halfApplied() string {
	if len(s.status.now.Tried) == 0 {
		return ""
	}
	return s.former()
}

// named returns a revision as people read it: with its folder if that differs from the spec.
func (s *syncer) named(revision, folder string) string {
	if revision == "" || folder == "" || folder == folderOf(s.object) {
		return revision
	}
	return revision + " (folder " + folder + ")"
}

// revisionOf returns a commit under the name of the source's head, if the head is at that commit.
func (s *syncer) revisionOf(commit string) string {
	if s.origin.head.Commit == commit {
		return s.origin.head.Revision()
	}
	return commit
}

// appliedName returns the last completely applied revision as people read it.
func (s *syncer) appliedName() string {
	return s.named(s.status.now.LastAppliedRevision, s.status.now.LastAppliedPath)
}

// halfwayName returns halfApplied as people read it.
func (s *syncer) halfwayName() string { return s.named(s.halfApplied(), s.formerAt().folder) }

// notKeptNow returns why the applied revision is not maintained now, else nil.
func (s *syncer) notKeptNow() error {
	if u := s.jobs.unkept; u != nil && s.jobs.active == nil && u.commit == commitOf(s.former()) {
		return u.err
	}
	return nil
}

// cannotGoOn returns why the last attempted revision must not be retried now; nil if it may, or if
// it is complete. Maintaining a partial revision continues it, and going back to the revision
// before reverts Git.
func (s *syncer) cannotGoOn(now time.Time) error {
	tried := s.halfApplied()
	if tried == "" {
		return nil
	}
	why := s.blocked(s.object)
	if pin := s.object.Spec.Pin; pin != nil && pin.Revision != commitOf(tried) {
		why = "the Landscape is pinned to another one"
	} else if windows, err := windowsAt(now, s.object.Spec.Windows, s.status.now.Windows); err != nil {
		why = err.Error()
	} else if !windows.open {
		why = "no window is open"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("a sync of %s began since and was not completed, and it cannot go on: %s", s.halfwayName(), why)
}

// keepOnly maintains the last applied revision, also after a restart, while the object itself is
// wrong. It applies nothing newer, and returns when to check again.
func (s *syncer) keepOnly(now time.Time) time.Time {
	switch {
	case s.faults.nameTaken: // the status under this name belongs to another Landscape
		return time.Time{}
	case s.object.Spec.Source == nil || !s.readable():
		if s.jobs.active == nil && s.jobs.unkept == nil && s.former() != "" {
			s.cannotKeep(commitOf(s.former()), errors.New(s.faults.misconfigured), now)
		}
		return time.Time{}
	}
	next := s.open(now)
	if s.origin.remote == nil {
		return next
	}
	if !s.origin.remote.offline {
		next = s.poll(now)
	}
	if s.jobs.active == nil {
		return earliest(next, s.keepFormer(now))
	}
	// A rejected revision is not retried meanwhile.
	if s.jobs.last.commitAt != s.jobs.active.revision.at() {
		return earliest(next, s.goOn(now))
	}
	if s.jobs.preparing != nil || s.jobs.active.applying || s.cannotGoOn(now) != nil {
		return next
	}
	commit := s.jobs.active.revision.Commit
	situation := s.situationOf(now, commit, false, purposeKept)
	situation.blocked, situation.times.windows = "", windowState{open: true}
	d := decide(situation)
	switch {
	case d.trigger == "":
		return earliest(next, d.at)
	case s.jobs.last.failures == 0 && d.trigger == triggerInterval:
		s.jobs.active.again(d.trigger, now)
	default:
		s.prepare(commit, d.trigger, purposeKept)
	}
	return next
}

// keepFormer maintains the last applied revision after a restart while a newer one cannot be
// applied. It returns when to retry.
func (s *syncer) keepFormer(now time.Time) time.Time {
	if s.jobs.active != nil {
		return s.goOn(now)
	}
	if s.jobs.preparing != nil || s.former() == "" {
		return time.Time{}
	}
	commit := commitOf(s.former())
	if wanted, _ := s.wanted(); s.formerAt() == s.jobs.last.commitAt || wanted == "" && s.origin.pollFailed == nil && s.faults.misconfigured == "" {
		return time.Time{}
	}
	if u := s.jobs.unkept; u != nil && u.commit == commit {
		if again := s.againAt(u.at, u.failures); now.Before(again) {
			return again
		}
	}
	if err := s.cannotGoOn(now); err != nil {
		s.cannotKeep(commit, err, now)
		return time.Time{}
	}
	s.prepare(commit, triggerInterval, purposeKept)
	return time.Time{}
}

// againAt returns the time of the next retry after so many failures in a row.
func (s *syncer) againAt(failed time.Time, failures int) time.Time {
	spec := &s.object.Spec
	return failed.Add(backoff.After(failures, retryInterval(spec), max(interval(spec), retryInterval(spec))))
}

// tries counts the failed attempts of a commit in a row.
type tries struct {
	failures int
	problems []string
	// ended is the end of the last attempt.
	ended time.Time
}

// note counts an attempt. Without problems it was complete.
func (t *tries) note(problems []string, now time.Time) {
	failures := t.failures + 1
	if len(problems) == 0 {
		failures = 0
	}
	*t = tries{failures: failures, problems: problems, ended: now}
}

// goOn retries the maintained partial revision while a newer one is rejected. The newer one is the
// last attempt, so no other retry covers the partial one. It also runs when somebody approves its
// held deletions. It returns when to check again.
func (s *syncer) goOn(now time.Time) time.Time {
	j := s.jobs.active
	trigger := triggerRetry
	if j.attempt.spec.approvals != specOf(s.object).approvals {
		trigger = triggerApproval
	} else if j.tries.failures == 0 {
		return time.Time{}
	}
	if s.jobs.preparing != nil || j.applying || s.jobs.last.commitAt == j.revision.at() || s.cannotGoOn(now) != nil || s.blocked(s.object) != "" {
		return time.Time{}
	}
	if again := s.againAt(j.tries.ended, j.tries.failures); j.tries.failures > 0 && now.Before(again) {
		return again
	}
	s.prepare(j.revision.Commit, trigger, purposeKept)
	return time.Time{}
}

// cannotKeep records why the last applied revision cannot be maintained. It notifies once per
// error.
func (s *syncer) cannotKeep(commit string, err error, now time.Time) {
	former := s.jobs.unkept
	s.jobs.unkept = &unkept{commit: commit, err: err, failures: 1, at: now}
	if former != nil && former.commit == commit {
		s.jobs.unkept.failures = former.failures + 1
		if former.err.Error() == err.Error() {
			return
		}
	}
	applied := s.status.now.LastAppliedRevision
	s.notify(notification.Neutral, notification.Warning, reasonNotKept, view{is: revisionsShown{applied: s.appliedName()}, last: lastShown{unkept: err}}.notKept(), "", applied)
}

// headOf returns an applied revision under its name at that time.
func headOf(applied, commit string) source.Head {
	if head, err := source.ParseRevision(applied); err == nil && head.Commit == commit {
		return head
	}
	return source.Head{Commit: commit}
}
