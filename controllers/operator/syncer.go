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

// syncer reconciles one Landscape. Its fields belong to the goroutine of run. Background goroutines
// send their results as functions (post).
type syncer struct {
	parts *parts
	key   receiver.Key
	hub   *hub
	wake  chan struct{}
	post  chan func()
	life  lifetime

	object *landscapev1alpha1.Landscape
	status *statusWriter
	origin origin
	asks   requests
	faults faults
	tools  tools
	jobs   jobs
	found  findings
}

// run works until the context ends or the Landscape no longer exists.
func (s *syncer) run(ctx context.Context) {
	s.life.alive, s.life.cancel = context.WithCancel(ctx)
	defer s.end()
	timer := s.parts.role.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-s.wake:
		case f := <-s.post:
			f()
		}
		next, gone := s.step()
		if gone {
			s.status.object = nil // a recreated object has its own status
			return
		}
		if s.status.flush(ctx) {
			s.parts.role.Log.Info("the status was written by somebody else: what is in memory is dropped, and everything is looked at anew", "landscape", s.key.String())
			s.status.object = nil
			return
		}
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		timer.Reset(s.until(next))
	}
}

// longest is the maximum sleep of an idle syncer.
const longest = time.Hour

func (s *syncer) until(next time.Time) time.Duration {
	if next.IsZero() {
		return longest
	}
	return min(max(next.Sub(s.parts.role.Clock.Now()), 0), longest)
}

// do runs a function in the syncer's goroutine, later.
func (s *syncer) do(f func()) {
	select {
	case s.post <- f:
	case <-s.life.alive.Done():
	}
}

// ask runs a question in the syncer's goroutine for background goroutines. It returns other once
// the syncer has ended.
func ask[T any](s *syncer, other T, question func() T) T {
	answer := make(chan T, 1)
	s.do(func() { answer <- question() })
	select {
	case given := <-answer:
		return given
	case <-s.life.alive.Done():
		return other
	}
}

// poke triggers a step.
func (s *syncer) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end stops everything. The clusters stay unchanged.
func (s *syncer) end() {
	s.life.cancel()
	s.closeRemote()
	s.life.background.Wait()
	s.tools.tokens.Close()
	if s.origin.closed != nil {
		<-s.origin.closed
	}
	s.tools.clusters.close()
	s.status.interrupted(s.parts.role.Clock.Now())
}

// step does the due work, and returns when to run next.
func (s *syncer) step() (next time.Time, gone bool) {
	object, err := s.parts.landscapeOf(s.key)
	if err != nil || object == nil || object.DeletionTimestamp != nil {
		return time.Time{}, err == nil
	}
	// A recreated object makes the memory obsolete.
	if s.object != nil && s.object.UID != object.UID {
		return time.Time{}, true
	}
	s.object = object
	if s.status.of(object) {
		s.found.onSeeds = heldOnSeeds(s.status.now.Held)
	}
	now := s.parts.role.Clock.Now()
	if want := object.Annotations[landscapev1alpha1.AnnotationSyncRequested]; want != "" && want != s.status.now.LastHandledSyncRequest {
		s.status.now.LastHandledSyncRequest = want
		s.asks.requested, s.asks.askedPoll, s.asks.asking = true, true, true
	}
	s.faults.misconfigured = s.check(now)
	suspended, until := s.suspension(now)
	if suspended != "" || s.faults.misconfigured != "" {
		if suspended != "" {
			s.pause()
		}
		s.jobs.decided = decision{waiting: suspended, at: until}
		if suspended == "" {
			until = earliest(until, s.keepOnly(now))
		}
		s.report(suspended)
		return until, false
	}
	next = s.open(now)
	if s.origin.remote == nil {
		s.jobs.decided = decision{}
		s.answer()
		s.report("")
		return next, false
	}
	if !s.origin.remote.offline {
		next = s.poll(now)
	}
	s.jobs.decided = decide(s.situation(now))
	next = earliest(next, s.act(now))
	s.answer()
	s.report("")
	return earliest(next, s.jobs.decided.at), false
}

// check returns the error in the object itself; empty for none.
func (s *syncer) check(now time.Time) string {
	spec := &s.object.Spec
	if spec.Source == nil {
		return "spec.source is not set: there is nothing to sync from"
	}
	if !s.readable() {
		return "spec.source.url: repositories in folders of the operator's machine are not allowed: start it with --allow-file-sources, or serve the repository"
	}
	if _, err := windowsAt(now, spec.Windows); err != nil {
		return err.Error()
	}
	if taken := s.taken(); taken != "" {
		return taken
	}
	if circle := s.parts.circle(s.object); circle != "" {
		return "spec.dependsOn is a circle: " + circle
	}
	return ""
}

// readable reports whether the operator may read the source.
func (s *syncer) readable() bool {
	return s.parts.role.FileSources || !strings.HasPrefix(s.object.Spec.Source.URL, "file://")
}

// taken returns why the name belongs to another Landscape, empty if it does not. Inventories have
// the name alone: a takeover deletes the objects of the other Landscape. So it needs a request,
// even if the other no longer exists.
func (s *syncer) taken() string {
	twin := s.parts.twin(s.object)
	ready := condition.Get(s.status.now.Conditions, landscapev1alpha1.LandscapeReady)
	s.faults.nameTaken = true
	switch {
	case twin != "":
		s.asks.requested = false
		return fmt.Sprintf("there is a Landscape %s already: what is applied is remembered by the name alone, so two of one name cannot be synced to one cluster; give this one another name", twin)
	case ready != nil && ready.Reason == reasonNameTaken && !s.asks.requested:
		return "the other Landscape of this name is gone, but what it has applied is remembered by the name: this one would take it over, and delete what it does not declare itself; " +
			"give this one another name, or ask for a sync of it (pergola sync) if it takes the place of the other"
	}
	s.faults.nameTaken = false
	return ""
}

// suspension returns why nothing is done, and until when.
func (s *syncer) suspension(now time.Time) (string, time.Time) {
	why := s.object.Spec.SuspendedAt(now)
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

// pause stops all work.
func (s *syncer) pause() {
	s.unprepare()
	if s.jobs.active != nil {
		s.jobs.active.control.stop()
		if s.jobs.active.applying {
			s.status.ended(s.parts.role.Clock.Now(), landscapev1alpha1.SyncRecord{Result: landscapev1alpha1.SyncInterrupted, Message: "suspended while it was applied"})
		}
		s.forgetGardenlets()
		s.jobs.ending, s.jobs.active = s.jobs.active.control.done, nil
		s.jobs.last.commitAt = commitAt{} // apply it after the pause
	}
}

// nextPoll returns the time of the next regular poll.
func (s *syncer) nextPoll() time.Time {
	return s.origin.polled.Add(spreadOut(pollInterval(&s.object.Spec), spreadOf(s.key.String())))
}

func (s *syncer) pollDue(now time.Time) bool { return s.asks.askedPoll || !now.Before(s.nextPoll()) }

// poll polls the source in the background if that is due, and returns the time of the next poll.
func (s *syncer) poll(now time.Time) time.Time {
	if s.origin.polling {
		return time.Time{}
	}
	if !s.pollDue(now) {
		return s.nextPoll()
	}
	s.origin.polling, s.asks.answering, s.asks.askedPoll = true, s.asks.askedPoll, false
	remote := s.origin.remote
	s.life.background.Go(func() {
		head, err := remote.Resolve(s.life.alive)
		s.do(func() { s.resolved(remote, head, err) })
	})
	return time.Time{}
}

// resolved processes the result of a poll.
func (s *syncer) resolved(remote *connection, head source.Head, err error) {
	if remote != s.origin.remote || s.life.alive.Err() != nil {
		return
	}
	s.origin.polling = false
	if s.asks.answering {
		s.asks.answered, s.asks.asking = true, s.asks.askedPoll && s.asks.asking
	}
	s.origin.polled = s.parts.role.Clock.Now()
	s.parts.metrics.polled(s.key, err)
	if err != nil {
		s.sourceFailed(err)
		return
	}
	s.origin.pollFailed = nil
	if head.Commit != s.origin.head.Commit && s.origin.head.Commit != "" {
		s.parts.role.Log.Info("the source has a new revision", "landscape", s.key.String(), "revision", head.Revision())
	}
	s.origin.head = head
	s.origin.newest.Store(&newest{commit: head.Commit, at: s.origin.polled})
}

// newest is the head of the source at the last poll.
type newest struct {
	commit string
	at     time.Time
}

// currentAt returns a function for other goroutines. It returns when a commit was last known to be
// the newest.
func (s *syncer) currentAt(commit string) func() time.Time {
	began := s.parts.role.Clock.Now()
	return func() time.Time {
		if n := s.origin.newest.Load(); n != nil && n.commit == commit {
			return n.at
		}
		return began
	}
}

// wanted returns the commit to apply.
func (s *syncer) wanted() (commit string, pinned bool) {
	if pin := s.object.Spec.Pin; pin != nil {
		return pin.Revision, true
	}
	return s.origin.head.Commit, false
}

// stated returns a commit with the folder in the spec.
func (s *syncer) stated(commit string) commitAt {
	return commitAt{commit: commit, folder: folderOf(s.object)}
}

// toApply returns the commit to apply: the wanted one. While the source cannot be polled, it is the
// maintained one, which is still applied at its interval.
func (s *syncer) toApply() (commit string, pinned bool, purpose purpose) {
	if commit, pinned = s.wanted(); commit == "" && s.origin.pollFailed != nil && s.jobs.active != nil {
		return s.jobs.active.revision.Commit, false, purposeInstead
	}
	return commit, pinned, purposeDue
}

// situation returns the input of decide.
func (s *syncer) situation(now time.Time) situation {
	wanted, pinned, purpose := s.toApply()
	return s.situationOf(now, wanted, pinned, purpose)
}

// situationOf returns the input of decide for a commit and a purpose.
func (s *syncer) situationOf(now time.Time, wanted string, pinned bool, purpose purpose) situation {
	object := s.object
	if purpose.isFormer() {
		object = s.keptObject()
	}
	spec := &object.Spec
	out := situation{
		now: now, is: revisionsKnown{wanted: wanted, pinned: pinned, attempted: s.jobs.last.commit},
		asked:    askedFor{requested: s.asks.requested && (!s.asks.asking || s.origin.remote.offline), operated: s.asks.operated},
		failures: s.jobs.last.failures, permanent: s.jobs.last.permanent || s.jobs.last.validErr != nil, times: timing{ended: s.jobs.last.ended, interval: interval(spec), retry: retryInterval(spec), spread: spreadOf(s.key.String())},
		blocked: s.blocked(s.object),
	}
	// After an attempt, going back to the applied revision is a change, too.
	if applied := appliedAt(&s.status.now); len(s.status.now.Tried) == 0 && applied.folder == folderOf(object) {
		out.is.applied = applied.commit
	}
	// Both lists were validated before.
	out.times.windows, _ = windowsAt(now, spec.Windows, s.status.now.Windows)
	head, former, stated := s.jobs.last.head, s.jobs.last.spec, specOf(object)
	out.asked.respecified = s.jobs.last.commit != "" && former != stated || s.jobs.last.fetchErr != nil && s.jobs.last.secrets != s.origin.remote.secrets ||
		s.jobs.last.validErr != nil && s.jobs.last.windows != digest(spec.Windows)
	switch {
	case s.jobs.preparing != nil && (purpose.isFormer() || !s.jobs.preparing.purpose.isFormer()):
		head, former = s.jobs.preparing.head, s.jobs.preparing.spec
		out.is.attempted, out.busy, out.asked.respecified = s.jobs.preparing.commit, true, former != stated
	case s.jobs.active != nil && s.jobs.active.applying && (purpose.isFormer() || !s.jobs.active.attempt.purpose.isFormer()):
		head, former = s.jobs.active.attempt.head, s.jobs.active.attempt.spec
		out.is.attempted, out.busy, out.asked.respecified = s.jobs.active.revision.Commit, true, former != stated
	}
	out.asked.approved = former.rest == stated.rest && former.approvals != stated.approvals
	out.is.retagged = !pinned && out.is.attempted != "" && out.is.attempted == s.origin.head.Commit && head.Name != "" && head != s.origin.head
	return out
}

// act starts the decided work. It returns when to check again; zero if other code decides that.
func (s *syncer) act(now time.Time) time.Time {
	d := s.jobs.decided
	commit, _, purpose := s.toApply()
	switch {
	case d.trigger == "":
		if p := s.jobs.preparing; p != nil && p.purpose == purposeDue && d.waiting != "" {
			// A window closed meanwhile, or a dependency is no longer ready.
			s.unprepare()
		}
		next := s.keepFormer(now)
		if d.waiting != "" {
			next = earliest(next, s.examine(commit, now))
		}
		return next
	case slices.Contains([]string{triggerInterval, triggerRequest, triggerOperation}, d.trigger) && s.jobs.last.failures == 0 && s.jobs.active != nil && !s.jobs.active.applying && s.jobs.active.revision.Commit == commit:
		s.asks.requested, s.asks.operated = false, false
		s.jobs.active.again(d.trigger, now)
	default:
		s.asks.requested, s.asks.operated = false, false
		s.prepare(commit, d.trigger, purpose)
	}
	return time.Time{}
}

// blocked returns which Landscape this one waits for; empty for none.
func (s *syncer) blocked(object *landscapev1alpha1.Landscape) string {
	for _, d := range object.Spec.DependsOn {
		other, err := s.parts.landscapeOf(receiver.Key{Namespace: object.Namespace, Name: d.Name})
		switch {
		case err != nil:
			return fmt.Sprintf("waiting for Landscape %s, which cannot be read: %v", d.Name, err)
		case other == nil:
			return fmt.Sprintf("waiting for Landscape %s, which does not exist (spec.dependsOn)", d.Name)
		}
		if why := notReady(other); why != "" && !s.parts.waitsFor(other, object.Name) {
			return fmt.Sprintf("waiting for Landscape %s: %s", d.Name, why)
		}
	}
	return ""
}
