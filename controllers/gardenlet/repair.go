package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Drift of an owner that nobody works on is repaired at once. That of one whose job is at work is kept until the job has ended, and looked at then,
// without waiting for the next round of care. Until then it stays, unless the job itself repairs it, as it does where a step waits for what was deleted: a
// set is not applied by two at a time.

// repair applies the set that an object belongs to again. It says false when that has to be tried once more.
func (g *Gardenlet) repair(ctx context.Context, e apply.DriftEvent) bool {
	var busy []*site
	for _, id := range g.ids() {
		at := g.site(id)
		if at == nil {
			continue
		}
		r, o := at.current()
		if o == nil {
			continue
		}
		if !at.busy.TryLock() {
			busy = append(busy, at)
			continue
		}
		found, ok := g.repairAt(ctx, at, r, o, e)
		at.busy.Unlock()
		if found {
			return ok
		}
		if len(o.Bundles()) == 0 {
			at.keepDrifted(false, e) // it may be of what could not be rendered
		}
	}
	// It is of one of these, or of none any more.
	for _, at := range busy {
		at.keepDrifted(true, e)
		g.repairDrifted(ctx, at, false) // the job may have ended just now
	}
	return true
}

// repairAt repairs what is of an owner, and tells it; at.busy is held. ok is false when it has to be tried once more.
func (g *Gardenlet) repairAt(ctx context.Context, at *site, r *owner.Reconciler, o *owner.Owner, e apply.DriftEvent) (found, ok bool) {
	done, found, err := r.Repair(ctx, o, e.Set)
	if !found {
		return false, true
	}
	if err != nil {
		g.metrics.repaired("failed")
		if ctx.Err() == nil {
			g.tellDrift(o.Known(), e, "could not be repaired: "+strings.Join(owner.Problems(err), "; "))
		}
		return true, false
	}
	if done.Ignored {
		return true, true
	}
	if slices.Contains(done.Left, e.Ref) {
		g.metrics.repaired("left")
		g.tellDrift(o.Known(), e, "is not repaired: it is declared otherwise than it was applied last, and that is not applied yet: a reconciliation does both")
		return true, true
	}
	if why := g.heldRepair(done.Held, e); why != "" {
		g.metrics.repaired("left")
		g.tellDrift(o.Known(), e, "is not repaired: "+why)
		at.poke() // the next convergence holds it, too, and says so in the report
		return true, true
	}
	g.metrics.repaired("repaired")
	g.tellDrift(o.Known(), e, "")
	g.Log.Info("drift was repaired", "owner", o.String(), "object", e.Ref.String(), "deleted", e.Deleted)
	return true, true
}

// heldRepair says why the recreation is held that would repair an object, and what lets it pass; empty if it is not.
func (g *Gardenlet) heldRepair(held []owner.HeldObjects, e apply.DriftEvent) string {
	g.mu.Lock()
	s := g.settings
	g.mu.Unlock()
	for _, h := range held {
		for _, o := range h.Objects {
			if h.Cluster == e.Cluster && o.Ref == e.Ref {
				return fmt.Sprintf("held: %s; to let it pass once: pergola approve %s %s/%s", o.Reason, s.landscape, g.Seed, permit.ShownID(o.Approval, g.usedApprovals(s)))
			}
		}
	}
	return ""
}

// keepDrifted keeps what changed of an owner for later, the newest of each object.
func (s *site) keepDrifted(isNew bool, events ...apply.DriftEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drifted == nil {
		s.drifted = map[apply.Ref]apply.DriftEvent{}
	}
	for _, e := range events {
		if have, there := s.drifted[e.Ref]; !there || have.At.Before(e.At) {
			s.drifted[e.Ref] = e
		}
	}
	s.new = s.new || isNew
}

// hasDrifted tells whether something was kept: something new, or, with again, anything.
func (s *site) hasDrifted(again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.new || again && len(s.drifted) > 0
}

// takeDrifted gives what was kept.
func (s *site) takeDrifted() map[apply.Ref]apply.DriftEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.drifted
	s.drifted, s.new = nil, false
	return out
}

// repairDrifted looks at what changed while somebody worked on the owner, if nobody does any more; whoever does looks at it afterwards. With again
// it tries once more what could not be repaired.
func (g *Gardenlet) repairDrifted(ctx context.Context, at *site, again bool) {
	for ; ctx.Err() == nil && at.hasDrifted(again) && at.busy.TryLock(); again = false {
		r, o := at.current()
		for _, e := range at.takeDrifted() {
			if found, ok := g.repairAt(ctx, at, r, o, e); found && !ok || !found && len(o.Bundles()) == 0 { // what is not rendered is not known
				at.keepDrifted(ctx.Err() != nil, e) // what was interrupted is looked at by the next job
			}
		}
		at.busy.Unlock()
	}
}
