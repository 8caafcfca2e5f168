package gardenlet

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// keep repairs drift on the seed and in the API servers of its Shoots, and checks health. It skips
// owners that a job works on. It also works while the virtual garden is unreachable.
func (g *Gardenlet) keep(ctx context.Context) {
	fleet.DriftRepairer{
		Engine: g.links.engine, Clusters: []*apply.Cluster{g.links.local}, AddedClusters: g.joining, Clock: g.options.Clock, CareInterval: g.options.Pace.CareInterval,
		Repair: g.fleet.Repair, Care: g.careForAll, SetsOf: g.fleet.SetsOf,
	}.Run(ctx)
}

// careForAll checks the health of the owners concurrently.
func (g *Gardenlet) careForAll(ctx context.Context) {
	began := g.options.Clock.Now()
	releasing := &owner.Reconciler{Engine: g.links.engine, Clock: g.options.Clock}
	if err := releasing.ReleaseTerminating(ctx, g.links.local); err != nil && ctx.Err() == nil {
		g.options.Log.Info("ManagedResources of control planes that are deleted keep them still", "error", err)
	}
	g.fleet.Care(ctx)
	g.mu.Lock()
	lease := g.heart.lease
	g.mu.Unlock()
	lease.NoteJudged(began)
}
