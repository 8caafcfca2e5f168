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

// unkept says why what was applied before this process is not kept by it.
type unkept struct {
	commit string
	err    error
	// failures in a row, the last one at a time.
	failures int
	at       time.Time
}

// mostTried is how many revisions the status keeps that were tried since the last complete sync,
// besides the one that is tried.
const mostTried = 5

// commitAt is a commit, and the folder of it that is the landscape: by another one the same commit
// declares something else.
type commitAt struct{ commit, folder string }

// triedAt is where a revision that was tried is.
func triedAt(tried landscapev1alpha1.TriedRevision) commitAt {
	return commitAt{commit: commitOf(tried.Revision), folder: tried.Path}
}

// appliedAt is where the one that was applied completely last is, the zero value for none.
func appliedAt(status *landscapev1alpha1.LandscapeStatus) commitAt {
	if status.LastAppliedRevision == "" {
		return commitAt{}
	}
	return commitAt{commit: commitOf(status.LastAppliedRevision), folder: status.LastAppliedPath}
}

// triedBeside are those that were tried besides one, mostTried at most: the same before it is noted
// that the one is tried, and after.
func triedBeside(tried []landscapev1alpha1.TriedRevision, one commitAt) []landscapev1alpha1.TriedRevision {
	beside := slices.DeleteFunc(slices.Clone(tried), func(other landscapev1alpha1.TriedRevision) bool { return triedAt(other) == one })
	return beside[max(len(beside)-mostTried, 0):]
}

// noteTried notes, before the first object is sent, that a revision is tried, and says whether it
// could be: who comes after this process has to know that what was applied before is not all that
// there is in the clusters.
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
	// should somebody else have written it, the next look at it ends this syncer
	s.status.flush(s.life.alive)
	if written := &s.status.written; slices.Equal(written.Tried, now.Tried) && equality.Semantic.DeepEqual(written.Windows, now.Windows) {
		return true
	}
	now.Tried, now.Windows = before.Tried, before.Windows
	return false
}

// refresh gives a copy of the object what is in its status now: what was written may be older.
func (s *syncer) refresh(object *landscapev1alpha1.Landscape) {
	now := &s.status.now
	object.Status.UsedApprovals, object.Status.Tried = slices.Clone(now.UsedApprovals), slices.Clone(now.Tried)
	object.Status.LastAppliedRevision, object.Status.LastAppliedPath = now.LastAppliedRevision, now.LastAppliedPath
}

// former is the revision that is kept while nothing newer can be: the one that was tried last, or
// else applied; empty for none.
func (s *syncer) former() string {
	if tried := s.status.now.Tried; len(tried) > 0 {
		return tried[len(tried)-1].Revision
	}
	return s.status.now.LastAppliedRevision
}

// formerAt is where that one is.
func (s *syncer) formerAt() commitAt {
	if tried := s.status.now.Tried; len(tried) > 0 {
		return triedAt(tried[len(tried)-1])
	}
	return appliedAt(&s.status.now)
}

// keptObject is the object as it was for what is kept: with the folder that this one is of,
// wherever the next one is looked for.
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

// halfApplied is the revision that was tried last, if its sync was not completed; else empty.
func (s *syncer) halfApplied() string {
	if len(s.status.now.Tried) == 0 {
		return ""
	}
	return s.former()
}

// named is a revision as people read it: with its folder where that is another one than is stated.
func (s *syncer) named(revision, folder string) string {
	if revision == "" || folder == "" || folder == folderOf(s.object) {
		return revision
	}
	return revision + " (folder " + folder + ")"
}

// revisionOf is a commit under the name that the source has for it, if it is at that.
func (s *syncer) revisionOf(commit string) string {
	if s.origin.head.Commit == commit {
		return s.origin.head.Revision()
	}
	return commit
}

// appliedName is the revision that was applied completely last, as people read it.
func (s *syncer) appliedName() string {
	return s.named(s.status.now.LastAppliedRevision, s.status.now.LastAppliedPath)
}

// halfwayName is the one that was tried last, if its sync was not completed; else empty.
func (s *syncer) halfwayName() string { return s.named(s.halfApplied(), s.formerAt().folder) }

// notKeptNow is why nothing keeps what is applied now; nil where something does.
func (s *syncer) notKeptNow() error {
	if u := s.jobs.unkept; u != nil && s.jobs.active == nil && u.commit == commitOf(s.former()) {
		return u.err
	}
	return nil
}

// cannotGoOn says why the revision that was tried last must not be tried again now; nil if it may,
// or was applied completely. Whoever keeps it goes on with it where it failed, and whoever goes
// back to the one before takes away what is in Git.
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

// keepOnly keeps what was applied last while the object itself is wrong: nothing newer is applied,
// but what is applied is looked after, also after a restart. It says when to look again.
func (s *syncer) keepOnly(now time.Time) time.Time {
	switch {
	case s.faults.nameTaken: // what is remembered by the name is another one's
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
	// a revision that was refused is not tried again meanwhile
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

// keepFormer keeps what was applied last while nothing newer can be: after a restart nobody does
// otherwise. It says when to try again what did not work.
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

// againAt is when something is tried again that has failed so many times in a row.
func (s *syncer) againAt(failed time.Time, failures int) time.Time {
	spec := &s.object.Spec
	return failed.Add(backoff.After(failures, retryInterval(spec), max(interval(spec), retryInterval(spec))))
}

// tries are those of a commit in a row that failed.
type tries struct {
	failures int
	problems []string
	// ended is when the last one did.
	ended time.Time
}

// note counts one more; without problems it was completed.
func (t *tries) note(problems []string, now time.Time) {
	failures := t.failures + 1
	if len(problems) == 0 {
		failures = 0
	}
	*t = tries{failures: failures, problems: problems, ended: now}
}

// goOn tries again what failed halfway and is kept, while what came after it is refused: that one
// is the last attempt, and nobody else repeats the other one. It does so, too, when somebody has
// approved what is held of it. It says when to look again.
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

// cannotKeep notes why what was applied last cannot be kept. It is told once, and not with each
// attempt.
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

// headOf is a revision that was applied before, under the name that it had then.
func headOf(applied, commit string) source.Head {
	if head, err := source.ParseRevision(applied); err == nil && head.Commit == commit {
		return head
	}
	return source.Head{Commit: commit}
}
