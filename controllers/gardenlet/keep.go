package gardenlet

import (
	"context"
	"sync"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/drift"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// keep repairs drift on the seed and in the API servers of its Shoots, and judges health, of all owners that no job works on. It needs the seed only, so it
// goes on while the virtual garden cannot be reached.
func (g *Gardenlet) keep(ctx context.Context) {
	drift.Keeper{
		Engine: g.engine, Clusters: []*apply.Cluster{g.local}, Joining: g.joining, Clock: g.Clock, CareInterval: g.CareInterval,
		Repair: g.repair, Care: g.careForAll, SetsOf: g.setsOf,
	}.Keep(ctx)
}

// careForAll judges the owners side by side.
func (g *Gardenlet) careForAll(ctx context.Context) {
	began := g.Clock.Now()
	var group sync.WaitGroup
	releasing := &owner.Reconciler{Engine: g.engine, Clock: g.Clock}
	if err := releasing.ReleaseLeaving(ctx, g.local); err != nil && ctx.Err() == nil {
		g.Log.Info("ManagedResources of control planes that are deleted keep them still", "error", err)
	}
	for _, id := range g.ids() {
		at := g.site(id)
		if at == nil {
			continue
		}
		r, o := at.current()
		g.repairDrifted(ctx, at, true)
		if o == nil || !at.busy.TryLock() {
			continue // its job judges it
		}
		group.Go(func() {
			defer at.busy.Unlock()
			if err := r.ApplyWaiting(ctx, o); err != nil && ctx.Err() == nil {
				g.Log.Info("what waits for the API server of a Shoot could not be applied yet", "owner", id, "error", err)
			}
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
