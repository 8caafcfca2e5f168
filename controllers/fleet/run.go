package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/internal/backoff"
)

// run converges a member, and does so again when that failed, when somebody asks for it, and once in a while.
func (f *Fleet[O]) run(ctx context.Context, at *member[O], m Member[O]) {
	o := f.options
	for failures := 0; ctx.Err() == nil; {
		select {
		case <-at.triggered: // what was asked for before a run begins is done by it
		default:
		}
		if !f.await(ctx, m.After) {
			return
		}
		err := f.converge(ctx, at, m)
		if ctx.Err() != nil {
			return
		}
		next := o.SyncPeriod + time.Duration(rand.Int64N(int64(o.SyncPeriod)/10+1))
		if err == nil {
			failures = 0
		} else {
			failures++
			next = backoff.After(failures, o.RetryInterval, o.LongestRetry)
		}
		o.Ended(m, at.owner, err, next)
		f.ended(m.ID, at, err == nil)
		timer := o.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-at.triggered:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// LeftOutError says that a member was not converged.
type LeftOutError struct {
	// After is the member that had to be converged before.
	After string
}

func (e *LeftOutError) Error() string {
	return fmt.Sprintf("it comes after %s, which is not converged", e.After)
}

// Converge runs members once, side by side, and says how that went, in their order. It leaves a member out if one that it comes after failed, was left out or
// has not run yet. All stay members.
func (f *Fleet[O]) Converge(ctx context.Context, members []Member[O]) []error {
	problems := make([]error, len(members))
	runs, taken := map[string]onceRun{}, make([]*member[O], len(members))
	for i, m := range members {
		taken[i], runs[m.ID] = f.take(m), onceRun{make(chan struct{}), &problems[i]}
	}
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() {
			defer close(runs[m.ID].ended)
			for _, id := range m.After {
				if !f.isConverged(id, runs) {
					problems[i] = &LeftOutError{After: id}
					return
				}
			}
			problems[i] = f.converge(ctx, taken[i], m)
			f.ended(m.ID, taken[i], problems[i] == nil)
		})
	}
	group.Wait()
	return problems
}

// onceRun is the run of one member: problem is why it failed, once it has ended.
type onceRun struct {
	ended   chan struct{}
	problem *error
}

// isConverged waits for the run of a member that has one now, and reports whether its last run succeeded.
func (f *Fleet[O]) isConverged(id string, runs map[string]onceRun) bool {
	if run, now := runs[id]; now {
		<-run.ended
		return *run.problem == nil
	}
	succeeded, _ := f.haveSucceeded([]string{id})
	return succeeded
}

// converge is one run. It fails where ctx ended before its turn came.
func (f *Fleet[O]) converge(ctx context.Context, at *member[O], m Member[O]) error {
	slots := f.slotsOf(m.Pool)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	at.busy.Lock()
	defer f.repairDrifted(ctx, at, false)
	defer at.busy.Unlock()
	return m.Converge(ctx, at.owner)
}

func (f *Fleet[O]) slotsOf(pool string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slots[pool] == nil {
		f.slots[pool] = make(chan struct{}, f.options.Slots)
	}
	return f.slots[pool]
}

// await waits until the last runs of some members have succeeded. It is false when ctx ended first.
func (f *Fleet[O]) await(ctx context.Context, after []string) bool {
	for {
		ready, changed := f.haveSucceeded(after)
		if ready {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (f *Fleet[O]) haveSucceeded(ids []string) (all bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if !f.succeeded[id] {
			return false, f.changed
		}
	}
	return true, f.changed
}

// ended notes how a run went.
func (f *Fleet[O]) ended(id string, at *member[O], succeeded bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at.state = Failing
	if succeeded {
		at.state = Converged
	}
	if f.succeeded[id] != succeeded {
		f.succeeded[id] = succeeded
		close(f.changed)
		f.changed = make(chan struct{})
	}
}
