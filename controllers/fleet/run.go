// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/internal/backoff"
)

// run converges a member, and repeats that after a failure, a trigger or SyncPeriod.
func (f *Fleet[O]) run(ctx context.Context, at *member[O], m Member[O]) {
	o := f.options
	for failures := 0; ctx.Err() == nil; {
		if !f.waitForMembers(ctx, m.After) {
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
			next = backoff.Delay(failures, o.RetryInterval, o.MaxRetryInterval)
		}
		o.OnRunEnd(m, at.owner, err, next)
		f.recordResult(m.ID, at, err == nil)
		timer := o.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-at.trigger:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// DependencyError is returned for a member that was not converged.
type DependencyError struct {
	// Dependency is the member that had to be converged first.
	Dependency string
}

func (e *DependencyError) Error() string {
	return fmt.Sprintf("it depends on %s, which is not reconciled", e.Dependency)
}

// Converge runs members once, in parallel, and returns their errors in order. It skips a member
// whose dependency failed, was skipped or has not run yet. Members of a pool begin in order, so a
// member has to follow its dependencies in the pool. All stay members.
func (f *Fleet[O]) Converge(ctx context.Context, members []Member[O]) []error {
	problems := make([]error, len(members))
	runs, pools := map[string]memberRun{}, map[string][]int{}
	for i, m := range members {
		f.setInput(m)
		runs[m.ID], pools[m.Pool] = memberRun{make(chan struct{}), &problems[i]}, append(pools[m.Pool], i)
	}
	var group sync.WaitGroup
	for _, pool := range pools {
		group.Go(func() {
			for _, i := range pool {
				m := members[i]
				end, err := f.waitForTurn(ctx, m, runs)
				if err != nil {
					problems[i] = err
					close(runs[m.ID].done)
					continue
				}
				group.Go(func() {
					defer close(runs[m.ID].done)
					defer end()
					at := f.setInput(m)
					problems[i] = f.runMember(ctx, at, m)
					f.recordResult(m.ID, at, problems[i] == nil)
				})
			}
		})
	}
	group.Wait()
	return problems
}

// waitForTurn waits until a member may run once, and returns the function that lets the next one of
// its pool run.
func (f *Fleet[O]) waitForTurn(ctx context.Context, m Member[O], runs map[string]memberRun) (end func(), err error) {
	for _, id := range m.After {
		if !f.isConverged(id, runs) {
			return nil, &DependencyError{Dependency: id}
		}
	}
	if end, err = f.acquireSlot(ctx, m.Pool); err != nil {
		return nil, fmt.Errorf("%s: no slot became free: %w", m.ID, err)
	}
	return end, nil
}

// memberRun is the run of one member. err is its error, set once done is closed.
type memberRun struct {
	done chan struct{}
	err  *error
}

// isConverged waits for a current run of a member, and reports whether its last run succeeded.
func (f *Fleet[O]) isConverged(id string, runs map[string]memberRun) bool {
	if run, now := runs[id]; now {
		<-run.done
		return *run.err == nil
	}
	succeeded, _ := f.haveAllSucceeded([]string{id})
	return succeeded
}

// converge is one run. It fails if ctx ends before the member has a slot.
func (f *Fleet[O]) converge(ctx context.Context, at *member[O], m Member[O]) error {
	end, err := f.acquireSlot(ctx, m.Pool)
	if err != nil {
		return err
	}
	defer end()
	select {
	case <-at.trigger: // this run covers all triggers that arrived before it
	default:
	}
	return f.runMember(ctx, at, m)
}

// acquireSlot waits for a free slot of a pool, and returns the function that frees it.
func (f *Fleet[O]) acquireSlot(ctx context.Context, pool string) (free func(), err error) {
	slots := f.poolSlots(pool)
	if ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
			return func() { <-slots }, nil
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

func (f *Fleet[O]) runMember(ctx context.Context, at *member[O], m Member[O]) error {
	at.busy.Lock()
	defer f.repairDrifted(ctx, at, false)
	defer at.busy.Unlock()
	return m.Converge(ctx, at.owner)
}

func (f *Fleet[O]) poolSlots(pool string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slots[pool] == nil {
		f.slots[pool] = make(chan struct{}, f.options.Slots)
	}
	return f.slots[pool]
}

// waitForMembers waits until the last runs of some members have succeeded. It returns false if ctx
// ends first.
func (f *Fleet[O]) waitForMembers(ctx context.Context, after []string) bool {
	for {
		ready, changed := f.haveAllSucceeded(after)
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

func (f *Fleet[O]) haveAllSucceeded(ids []string) (all bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if !f.succeeded[id] {
			return false, f.successChanged
		}
	}
	return true, f.successChanged
}

// recordResult records the result of a run.
func (f *Fleet[O]) recordResult(id string, at *member[O], succeeded bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at.state = Failing
	if succeeded {
		at.state = Converged
	}
	if f.succeeded[id] != succeeded {
		f.succeeded[id] = succeeded
		close(f.successChanged)
		f.successChanged = make(chan struct{})
	}
}
