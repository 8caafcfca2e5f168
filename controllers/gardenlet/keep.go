package gardenlet

import (
	"context"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/drift"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// keep repairs drift on the seed and judges health, of all owners that no job works on. It needs the seed only, so it goes on while the
// virtual garden cannot be reached.
func (g *Gardenlet) keep(ctx context.Context) {
	drift.Keeper{
		Engine: g.engine, Clusters: []*apply.Cluster{g.local}, Clock: g.Clock, CareInterval: g.CareInterval,
		Repair: g.repair, Care: g.careForAll, SetsOf: g.setsOf,
	}.Keep(ctx)
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
			if ctx.Err() == nil {
				g.tellDrift(o.Known(), e, strings.Join(owner.Problems(err), "; "))
			}
			return false
		}
		g.tellDrift(o.Known(), e, "")
		g.Log.Info("drift was repaired", "owner", id, "object", e.Ref.String(), "deleted", e.Deleted)
		return true
	}
	return !skipped
}

// setsOf gives the sets that write a ManagedResource.
func (g *Gardenlet) setsOf(cluster string, ref apply.Ref) []string {
	var out []string
	for _, id := range g.ids() {
		at := g.site(id)
		if at == nil {
			continue
		}
		if r, o := at.current(); o != nil {
			if set := r.SetOfManaged(o, cluster, ref); set != "" {
				out = append(out, set)
			}
		}
	}
	return out
}
