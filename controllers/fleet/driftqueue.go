// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pergola-dev/pergola/apply"
)

// Drift of an idle owner is repaired at once, drift of a busy one when its run ends. A run repairs
// drift itself where a step waits for a deleted object. Two goroutines never apply one set at the
// same time.

// driftQueue queues the drift events of an owner that is busy. The zero value is empty; it is safe
// for concurrent use.
type driftQueue struct {
	mu     sync.Mutex
	events map[driftedObject]apply.DriftEvent
	// hasNewEvent reports whether the queue has an event that was never tried.
	hasNewEvent bool
}

// driftedObject identifies the object of an event: several clusters of one owner may have an object
// of the same name.
type driftedObject struct {
	cluster string
	ref     apply.Ref
}

// add queues events and drops all but the newest of each object.
func (d *driftQueue) add(fresh bool, events ...apply.DriftEvent) {
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
	d.hasNewEvent = d.hasNewEvent || fresh
}

// hasWork reports whether the queue has a fresh event or, with again, any event.
func (d *driftQueue) hasWork(again bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hasNewEvent || again && len(d.events) > 0
}

func (d *driftQueue) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events)
}

// drain empties the queue and returns its events.
func (d *driftQueue) drain() []apply.DriftEvent {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Values(d.events))
	d.events, d.hasNewEvent = nil, false
	return out
}

// Repair lets the owner of an object repair it. If no idle owner has the object, each busy owner
// queues the event. Repair returns false if the caller has to retry.
func (f *Fleet[O]) Repair(ctx context.Context, e apply.DriftEvent) bool {
	var busy []*member[O]
	for _, at := range f.sortedMembers() {
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
			// the object may belong to a bundle that could not be rendered
			at.driftQueue.add(false, e)
		}
	}
	// The object belongs to a busy owner or to none.
	for _, at := range busy {
		at.driftQueue.add(true, e)
		f.repairDrifted(ctx, at, false) // the run may have just ended
	}
	return true
}

// repair calls the owner; the caller holds at.busy.
func (at *member[O]) repair(ctx context.Context, e apply.DriftEvent) (found, ok, rendered bool) {
	something, rendered := at.owner.HasObjects()
	if !something {
		return false, true, true
	}
	ctx, end := at.memberContext(ctx)
	defer end()
	found, ok = at.owner.Repair(ctx, e)
	return found, ok, rendered
}

// memberContext returns a context that also ends when the owner stops being a member.
func (at *member[O]) memberContext(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(at.removed, func() { cancel(context.Cause(at.removed)) })
	return ctx, func() { stop(); cancel(nil) }
}

// repairDrifted repairs the queued drift of an idle owner. The goroutine that holds a busy owner
// calls it at its end. With again it also retries failed repairs.
func (f *Fleet[O]) repairDrifted(ctx context.Context, at *member[O], again bool) {
	for ; ctx.Err() == nil && at.driftQueue.hasWork(again) && at.busy.TryLock(); again = false {
		for _, e := range at.driftQueue.drain() {
			// without a render the objects of the owner are unknown
			if found, ok, rendered := at.repair(ctx, e); found && !ok || !found && !rendered {
				// the next run retries an interrupted repair
				at.driftQueue.add(ctx.Err() != nil, e)
			}
		}
		at.busy.Unlock()
	}
}

// Care repairs queued drift of all idle owners, then judges their health in parallel.
func (f *Fleet[O]) Care(ctx context.Context) {
	var group sync.WaitGroup
	for _, at := range f.sortedMembers() {
		f.repairDrifted(ctx, at, true)
		if !at.busy.TryLock() {
			continue // the run judges its own health
		}
		if something, _ := at.owner.HasObjects(); !something {
			at.busy.Unlock()
			continue
		}
		group.Go(func() {
			defer at.busy.Unlock()
			ctx, end := at.memberContext(ctx)
			defer end()
			at.owner.Care(ctx)
		})
	}
	group.Wait()
}
