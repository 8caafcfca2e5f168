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
	// purposeDue.
	attempt   attempt
	revision  *revision
	converger *landscape.Converger
	given     permissions
	engine    *apply.Engine
	// completed means that the seeds know that the revision is applied.
	completed bool
	told      telling
	// applying is false while the revision is only maintained.
	applying bool
	control  control
	steps    atomic.Pointer[string]
	// declaring counts the declarations.
	declaring declaring

	// tries counts the incomplete attempts in a row of this job and of earlier jobs of the commit.
	tries   tries
	pending pendingSeeds
}

// permissions are the approvals that a job may use or has used.
type permissions struct {
	approved []string
	// seen is what the review of the revision shows; nil if no review is required.
	seen *permit.Review
	// spent are the approvals that the running sync used, as people gave them.
	spent []string
}

// passed reports whether the running sync used the approval of an id.
func (p permissions) passed(id string) bool {
	return slices.ContainsFunc(p.spent, func(spent string) bool { return permit.TrimSuffix(spent) == id })
}

// telling says where the running sync is shown, and when it began.
type telling struct {
	// record means that the history has the running sync, shown that the last operation is this
	// sync.
	record, shown bool
	began         time.Time
}

// control stops a job, or makes it apply once more.
type control struct {
	stop    context.CancelFunc
	stopped atomic.Bool
	done    chan struct{}
	repeat  chan string
}

// pendingSeeds are objects that gardenlets have to reconcile.
type pendingSeeds struct {
	mu sync.Mutex
	// written are the objects since the last successful sync.
	written []*followed
	// publishedFor are the seeds that a sync published for since then.
	publishedFor []string
}

// progress returns a line about the progress.
func (j *job) progress() string {
	text := "applying " + j.revision.Revision()
	if steps := j.steps.Load(); steps != nil {
		text += ": " + *steps
	}
	return text
}

// again applies the revision once more, as a sync of its own that begins now.
func (j *job) again(trigger string, now time.Time) {
	j.applying, j.attempt.trigger, j.told.record, j.told.shown, j.told.began = true, trigger, false, false, now
	j.control.repeat <- trigger
}

// work applies and maintains the revision until the job is stopped.
func (s *syncer) work(ctx context.Context, j *job, limit time.Duration) {
	for {
		limited, cancel := context.WithTimeout(ctx, limit)
		report := &landscape.Report{}
		j.declaring.begin()
		err := s.safely(func() (err error) {
			unpublished := s.publishReview(limited, j)
			report, err = j.converger.Apply(limited)
			// A seed that does not know the review would hold the reviewed deletions.
			if unpublished != nil {
				return errors.Join(err, unpublished)
			}
			if j.converger.GardenEnded() { // nobody is left to publish for
				return err
			}
			if err = errors.Join(err, s.publish(limited, j)); err == nil {
				err = s.completeReview(limited, j)
			}
			return err
		})
		late := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		totals := j.converger.Totals()
		written := j.takeWritten()
		if err != nil {
			j.awaits(written...) // the next sync waits for them, too
		}
		s.do(func() {
			s.applied(j, report, totals, err, late, func(message string) bool { return s.await(ctx, j, limit, written, message) })
		})
		keeping, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.safely(func() error { return j.converger.Keep(keeping) }) }()
		var looked sync.WaitGroup
		looked.Go(func() { s.watchSeeds(keeping, j) })
		looked.Go(func() {
			j.converger.WatchOperations(keeping, func() {
				s.do(func() { s.asks.operated = s.asks.operated || s.jobs.active == j && !j.applying })
			})
		})
		select {
		case <-ctx.Done():
		case <-j.control.repeat:
		case err := <-ended: // a lost lease ends the whole operator
			ended <- err
			if fault := new(*panics.Error); errors.As(err, fault) {
				s.do(func() { s.dropped(j, err) })
			}
			select {
			case <-ctx.Done():
			case <-j.control.repeat:
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

// dropped records that a job no longer maintains its revision, which is then read and applied
// again.
func (s *syncer) dropped(j *job, err error) {
	if s.jobs.active != j || s.life.alive.Err() != nil {
		return
	}
	o := j.outcome(s.parts.role.Clock.Now())
	o.open, o.problems, o.failures = s.jobs.last.open, []string{err.Error()}, s.jobs.last.failures+1
	s.jobs.last = o
	s.status.errors(o.problems)
	s.notify(notification.Failed, notification.Warning, reasonOf(err), err.Error(), o.commit, o.revision)
}

// safely returns a panic as an error, so that a broken revision or source does not affect other
// Landscapes.
func (s *syncer) safely(work func() error) error {
	err := panics.Safe(work)()
	var fault *panics.Error
	if errors.As(err, &fault) {
		s.parts.role.Log.Error("a panic was caught", "landscape", s.key.String(), "error", err, "stack", string(fault.Stack))
	}
	return err
}
