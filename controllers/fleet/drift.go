package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pergola-dev/pergola/apply"
)

// Drift of an owner is repaired at once if no run works on it, and otherwise when the run ends. The
// run itself may repair it before, as it does where a step waits for a deleted object. Two
// goroutines never apply one set at the same time.

// drifted is what changed while somebody worked on an owner. The zero value is empty; it is safe
// for concurrent use.
type drifted struct {
	mu     sync.Mutex
	events map[driftedObject]apply.DriftEvent
	// fresh says that some of it was not tried yet.
	fresh bool
}

// driftedObject is what an event is about: clusters of one owner may have an object of one name
// each.
type driftedObject struct {
	cluster string
	ref     apply.Ref
}

// add keeps events for later, the newest of each object.
func (d *drifted) add(fresh bool, events ...apply.DriftEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.events == nil {
		d.events = map[driftedObject]apply.DriftEvent{}
	}
	for _, e := range events {
		of := driftedObject{e.Cluster, e.Ref}
		if have, known := d.events[of]; !known || have.At.Before(e.At) {
			d.events[of] = e
		}
	}
	d.fresh = d.fresh || fresh
}

// has reports whether something was kept: something fresh, or, with again, anything.
func (d *drifted) has(again bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fresh || again && len(d.events) > 0
}

func (d *drifted) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events)
}

// take gives what was kept.
func (d *drifted) take() []apply.DriftEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Values(d.events))
	d.events, d.fresh = nil, false
	return out
}

// Repair has the owner of an object repair it. If no idle owner has it, it keeps the event for each
// owner at work. It is false when it has to be tried again.
func (f *Fleet[O]) Repair(ctx context.Context, e apply.DriftEvent) bool {
	var busy []*member[O]
	for _, at := range f.all() {
		if !at.busy.TryLock() {
			busy = append(busy, at)
			continue
		}
		found, ok, rendered := at.repair(ctx, e)
		at.busy.Unlock()
		if found {
			return ok
		}
		if !rendered {
			at.drifted.add(false, e) // it may be of what could not be rendered
		}
	}
	// It is of one of these, or of none any more.
	for _, at := range busy {
		at.drifted.add(true, e)
		f.repairDrifted(ctx, at, false) // the run may have ended just now
	}
	return true
}

// repair asks the owner; at.busy is held.
func (at *member[O]) repair(ctx context.Context, e apply.DriftEvent) (found, ok, rendered bool) {
	something, rendered := at.owner.Left()
	if !something {
		return false, true, true
	}
	ctx, end := at.whileMember(ctx)
	defer end()
	found, ok = at.owner.Repair(ctx, e)
	return found, ok, rendered
}

// whileMember gives a context that ends when the owner is no member any more, too.
func (at *member[O]) whileMember(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(at.gone, func() { cancel(context.Cause(at.gone)) })
	return ctx, func() { stop(); cancel(nil) }
}

// repairDrifted looks at what changed while somebody worked on the owner, if nobody does any more;
// whoever does looks at it afterwards. With again it tries once more what could not be repaired.
func (f *Fleet[O]) repairDrifted(ctx context.Context, at *member[O], again bool) {
	for ; ctx.Err() == nil && at.drifted.has(again) && at.busy.TryLock(); again = false {
		for _, e := range at.drifted.take() {
			// what is not rendered is not known
			if found, ok, rendered := at.repair(ctx, e); found && !ok || !found && !rendered {
				// what was interrupted is looked at by the next run
				at.drifted.add(ctx.Err() != nil, e)
			}
		}
		at.busy.Unlock()
	}
}

// Care judges the health of all owners that no run works on, side by side. Before, it repairs drift
// that was kept for them.
func (f *Fleet[O]) Care(ctx context.Context) {
	var group sync.WaitGroup
	for _, at := range f.all() {
		f.repairDrifted(ctx, at, true)
		if !at.busy.TryLock() {
			continue // its run judges it
		}
		if something, _ := at.owner.Left(); !something {
			at.busy.Unlock()
			continue
		}
		group.Go(func() {
			defer at.busy.Unlock()
			ctx, end := at.whileMember(ctx)
			defer end()
			at.owner.Care(ctx)
		})
	}
	group.Wait()
}
