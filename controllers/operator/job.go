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

// job applies a revision, and keeps it until it is stopped.
type job struct {
	// attempt is how the revision came to be applied, but for the trigger, which is that of the
	// last sync; after the first one it is due like any other.
	attempt   attempt
	revision  *revision
	converger *landscape.Converger
	given     permissions
	engine    *apply.Engine
	// completed says that the seeds know that it is applied.
	completed bool
	told      telling
	// applying is false while the revision is only kept.
	applying bool
	control  control
	steps    atomic.Pointer[string]
	// declaring says how far the declarations are.
	declaring declaring

	// tries are those in a row of which none was completed, of this job and those of the same
	// commit before it.
	tries   tries
	pending pendingSeeds
}

// permissions are the approvals that a job may use, and those that it has used.
type permissions struct {
	approved []string
	// seen is what could be seen of the revision in its review; nil where none is asked for.
	seen *permit.Review
	// spent are the approvals by which something passes in the sync that goes on, as people gave
	// them.
	spent []string
}

// passed reports whether something has passed by an id in the sync that goes on.
func (p permissions) passed(id string) bool {
	return slices.ContainsFunc(p.spent, func(spent string) bool { return permit.Plain(spent) == id })
}

// telling says where the sync that goes on is shown, and since when it goes on.
type telling struct {
	// record says whether the history has the sync that goes on, shown whether the last operation
	// is it.
	record, shown bool
	began         time.Time
}

// control stops a job, and has it applied again.
type control struct {
	stop    context.CancelFunc
	stopped atomic.Bool
	done    chan struct{}
	repeat  chan string
}

// pendingSeeds are what gardenlets have to take up.
type pendingSeeds struct {
	mu sync.Mutex
	// written is what gardenlets have to work on since the last sync that went well.
	written []*followed
	// publishedFor are the seeds for which a sync has published something since then.
	publishedFor []string
}

// progress is a line about how far it is.
func (j *job) progress() string {
	text := "applying " + j.revision.Revision()
	if steps := j.steps.Load(); steps != nil {
		text += ": " + *steps
	}
	return text
}

// again applies the revision once more. That is a sync of its own, which begins now.
func (j *job) again(trigger string, now time.Time) {
	j.applying, j.attempt.trigger, j.told.record, j.told.shown, j.told.began = true, trigger, false, false, now
	j.control.repeat <- trigger
}

// work applies and keeps until the job is stopped.
func (s *syncer) work(ctx context.Context, j *job, limit time.Duration) {
	for {
		limited, cancel := context.WithTimeout(ctx, limit)
		report := &landscape.Report{}
		j.declaring.begin()
		err := s.safely(func() (err error) {
			unpublished := s.publishReview(limited, j)
			report, err = j.converger.Apply(limited)
			// a seed that does not know of the review would hold what everybody has seen
			if unpublished != nil {
				return errors.Join(err, unpublished)
			}
			if j.converger.GardenEnded() { // and nobody is there any more to publish something to
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
			j.awaits(written...) // whoever comes after it waits for them, too
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
		case err := <-ended: // that a lease is lost ends the whole operator
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

// dropped notes that a revision is not kept any more by the job that did: it is read and applied
// anew.
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

// safely works, and gives a panic as an error: what is wrong with one revision or source is no
// matter of other Landscapes.
func (s *syncer) safely(work func() error) error {
	err := panics.Safe(work)()
	var fault *panics.Error
	if errors.As(err, &fault) {
		s.parts.role.Log.Error("a panic was caught", "landscape", s.key.String(), "error", err, "stack", string(fault.Stack))
	}
	return err
}
