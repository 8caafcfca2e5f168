// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/internal/panics"
)

// job applies a revision, and maintains it until it is stopped.
type job struct {
	// attempt describes the first sync of the revision. Later syncs have their own trigger and
	// purposeApply.
	attempt     attempt
	revision    *revision
	converger   *landscape.Converger
	permissions jobPermissions
	engine      *apply.Engine
	// isReviewComplete means that the seeds know that the revision is applied.
	isReviewComplete bool
	reporting        jobReporting
	// isApplying is false while the revision is only maintained.
	isApplying bool
	control    jobControl
	lastStep   atomic.Pointer[string]
	// declarations counts the declarations.
	declarations declarationProgress

	// failedAttempts counts the incomplete attempts in a row of this job and of earlier jobs of the
	// commit.
	failedAttempts failedAttempts
	pendingSeeds   pendingSeeds
}

// jobPermissions are the approvals that a job may use or has used.
type jobPermissions struct {
	approved []string
	// review is what the review of the revision shows; it is nil if no review is required.
	review *permit.Review
	// usedApprovals are the approvals that the running sync used, as people gave them.
	usedApprovals []string
}

// hasUsed reports whether the running sync used the approval of an id.
func (p jobPermissions) hasUsed(id string) bool {
	return slices.ContainsFunc(p.usedApprovals, func(spent string) bool { return permit.TrimSuffix(spent) == id })
}

// jobReporting says where the running sync is shown, and when it began.
type jobReporting struct {
	// isInHistory means that the history has the running sync; isLastOperation means that the last
	// operation is this sync.
	isInHistory, isLastOperation bool
	startedAt                    time.Time
}

// jobControl stops a job, or makes it apply once more.
type jobControl struct {
	stop           context.CancelFunc
	isStopped      atomic.Bool
	done           chan struct{}
	repeatTriggers chan string
}

// pendingSeeds are objects that gardenlets have to reconcile.
type pendingSeeds struct {
	mu sync.Mutex
	// changedOwners are the objects since the last successful sync.
	changedOwners []*awaitedOwner
	// publishedSeeds are the seeds that a sync has published for since the last successful sync.
	publishedSeeds []string
}

// progressText returns a line about the progress.
func (j *job) progressText() string {
	text := "applying " + j.revision.Revision()
	if steps := j.lastStep.Load(); steps != nil {
		text += ": " + *steps
	}
	return text
}

// reapply applies the revision once more, as a separate sync that begins now.
func (j *job) reapply(trigger string, now time.Time) {
	j.isApplying, j.attempt.trigger, j.reporting.isInHistory, j.reporting.isLastOperation, j.reporting.startedAt = true, trigger, false, false, now
	j.control.repeatTriggers <- trigger
}

// runJob applies and maintains the revision until the job is stopped.
func (s *landscapeReconciler) runJob(ctx context.Context, j *job, limit time.Duration) {
	for {
		limited, cancel := context.WithTimeout(ctx, limit)
		report := &landscape.RunReport{}
		j.declarations.reset()
		err := s.catchPanic(func() (err error) {
			unpublished := s.publishReview(limited, j)
			report, err = j.converger.Apply(limited)
			// A seed that does not know the review would hold the reviewed deletions.
			if unpublished != nil {
				return errors.Join(err, unpublished)
			}
			if j.converger.HasDeletedGarden() { // no seed is left to publish for
				return err
			}
			if err = errors.Join(err, s.publishForSeeds(limited, j)); err == nil {
				err = s.completeReview(limited, j)
			}
			return err
		})
		late := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		totals := j.converger.ObjectTotals()
		written := j.takeAwaitedOwners()
		if err != nil {
			j.addAwaitedOwners(written...) // the next sync waits for them, too
		}
		s.enqueue(func() {
			s.recordSyncResult(j, report, totals, err, late, func(message string) bool { return s.waitForGardenlets(ctx, j, limit, written, message) })
		})
		keeping, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.catchPanic(func() error { return j.converger.Maintain(keeping) }) }()
		var looked sync.WaitGroup
		looked.Go(func() { s.pollSeedReports(keeping, j) })
		looked.Go(func() {
			j.converger.WatchGardenRequests(keeping, func() {
				s.enqueue(func() {
					s.requests.operationRequested = s.requests.operationRequested || s.jobs.activeJob == j && !j.isApplying
				})
			})
		})
		select {
		case <-ctx.Done():
		case <-j.control.repeatTriggers:
		case err := <-ended: // a lost lease ends the whole operator
			ended <- err
			if fault := new(*panics.Error); errors.As(err, fault) {
				s.enqueue(func() { s.recordMaintainPanic(j, err) })
			}
			select {
			case <-ctx.Done():
			case <-j.control.repeatTriggers:
			}
		}
		stop()
		<-ended
		looked.Wait()
		if ctx.Err() != nil {
			return
		}
	}
}

// recordMaintainPanic records that a job no longer maintains its revision, which is then read and
// applied again.
func (s *landscapeReconciler) recordMaintainPanic(j *job, err error) {
	if s.jobs.activeJob != j || s.lifetime.ctx.Err() != nil {
		return
	}
	o := j.baseOutcome(s.operator.role.Clock.Now())
	o.openItems, o.problems, o.failures = s.jobs.lastOutcome.openItems, []string{err.Error()}, s.jobs.lastOutcome.failures+1
	s.jobs.lastOutcome = o
	s.status.setErrors(o.problems)
	s.notify(notification.Failed, notification.Warning, reasonOf(err), err.Error(), o.commit, o.revision)
}

// catchPanic returns a panic as an error, so that a broken revision or source does not affect other
// Landscapes.
func (s *landscapeReconciler) catchPanic(work func() error) error {
	err := panics.AsError(work)()
	var fault *panics.Error
	if errors.As(err, &fault) {
		s.operator.role.Log.Error("a panic was caught", "landscape", s.key.String(), "error", err, "stack", string(fault.Stack))
	}
	return err
}
