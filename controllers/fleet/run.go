package fleet

import (
	"context"
	"math/rand/v2"
	"time"
)

// run converges a member, and does so again when that failed, when somebody asks for it, and once in a while.
func (f *Fleet[O]) run(ctx context.Context, at *member[O], m Member[O]) {
	o := f.options
	retry := o.RetryInterval
	for ctx.Err() == nil {
		select {
		case <-at.triggered: // what was asked for before a run begins is done by it
		default:
		}
		err := f.converge(ctx, at, m)
		if ctx.Err() != nil {
			return
		}
		next := o.SyncPeriod + time.Duration(rand.Int64N(int64(o.SyncPeriod)/10+1))
		if err == nil {
			retry = o.RetryInterval
		} else {
			next, retry = retry, min(2*retry, o.LongestRetry)
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

// converge is one run. It does nothing where ctx ended before its turn came.
func (f *Fleet[O]) converge(ctx context.Context, at *member[O], m Member[O]) error {
	if !f.await(ctx, m.After) {
		return nil
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil
	}
	at.busy.Lock()
	defer f.repairDrifted(ctx, at, false)
	defer at.busy.Unlock()
	return m.Converge(ctx, at.owner)
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
