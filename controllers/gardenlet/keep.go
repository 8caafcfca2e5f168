package gardenlet

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// judgeRepaired is how soon after a repair health is judged again: what was repaired rolls out first.
const judgeRepaired = 1500 * time.Millisecond

// keep repairs drift on the seed and judges health, of all owners that no job works on. It needs the seed only, so it goes on while the
// virtual garden cannot be reached.
func (g *Gardenlet) keep(ctx context.Context) {
	events := make(chan apply.DriftEvent, 256)
	tell := func(e apply.DriftEvent) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	var watchers sync.WaitGroup
	watchers.Go(func() { g.engine.Watch(ctx, g.local, tell) })
	watchers.Go(func() { g.watchDeletions(ctx, tell) })
	defer watchers.Wait()
	care := g.Clock.NewTicker(g.CareInterval)
	defer care.Stop()
	failed := map[string]apply.DriftEvent{}
	repair := func(e apply.DriftEvent) {
		delete(failed, e.Set)
		if !g.repair(ctx, e) {
			failed[e.Set] = e
		}
	}
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			repair(e)
			soon = g.Clock.After(judgeRepaired)
		case <-soon:
			soon = nil
			g.careForAll(ctx)
		case <-care.C():
			for _, e := range maps.Clone(failed) {
				repair(e)
			}
			g.careForAll(ctx)
		}
	}
}

// careForAll judges the owners side by side.
func (g *Gardenlet) careForAll(ctx context.Context) {
	began := g.Clock.Now()
	var group sync.WaitGroup
	for _, id := range g.ids() {
		at := g.site(id)
		if at == nil {
			continue
		}
		r, o := at.current()
		if o == nil || !at.busy.TryLock() {
			continue // its job judges it
		}
		group.Go(func() {
			defer at.busy.Unlock()
			if _, err := r.Care(ctx, o); err != nil && ctx.Err() == nil {
				g.Log.Info("health could not be told", "owner", id, "error", err)
			}
		})
	}
	group.Wait()
	g.mu.Lock()
	lease := g.lease
	g.mu.Unlock()
	lease.NoteJudged(began)
}

// repair applies the set that an object belongs to again. It says false when that has to be tried once more.
func (g *Gardenlet) repair(ctx context.Context, e apply.DriftEvent) bool {
	skipped := false
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
			skipped = true // its job is at work; the next round sees what is left of it
			continue
		}
		found, err := r.Repair(ctx, o, e.Set)
		at.busy.Unlock()
		if !found {
			continue
		}
		g.metrics.repaired(err)
		if err != nil {
			g.Log.Warn("drift could not be repaired", "owner", id, "object", e.Ref.String(), "error", strings.Join(owner.Problems(err), "; "))
			return false
		}
		g.Log.Info("drift was repaired", "owner", id, "object", e.Ref.String(), "deleted", e.Deleted)
		return true
	}
	return !skipped
}

// watchDeletions reports ManagedResources that somebody deletes: our finalizer keeps them, so they never go by themselves and
// are no drift to the engine.
func (g *Gardenlet) watchDeletions(ctx context.Context, tell func(apply.DriftEvent)) {
	found := make(chan apply.Ref, 256)
	stop := g.local.OnChange(func(e apply.ChangeEvent) {
		if e.New == nil || e.Ref.Kind != "ManagedResource" || e.New.GetDeletionTimestamp() == nil || e.Old != nil && e.Old.GetDeletionTimestamp() != nil {
			return
		}
		select {
		case found <- e.Ref:
		default: // so many at once are no slip of the hand; the next convergence sees to them
		}
	})
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ref := <-found:
			for _, id := range g.ids() {
				at := g.site(id)
				if at == nil {
					continue
				}
				if r, o := at.current(); o != nil {
					if set := r.SetOfManaged(o, g.local.Name(), ref); set != "" {
						tell(apply.DriftEvent{Cluster: g.local.Name(), Set: set, Ref: ref, Deleted: true, At: g.Clock.Now()})
					}
				}
			}
		}
	}
}
