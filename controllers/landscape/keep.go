package landscape

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// careInterval is how often conditions are judged unless an option says otherwise (upstream: 30 s).
const careInterval = 30 * time.Second

// Keep repairs drift and judges conditions until the context ends. Apply has to have run before:
// what it got no lease for is left alone. It returns an error when a lease was lost. No review and
// no approval counts for what it does.
func (c *Converger) Keep(ctx context.Context) error {
	c.runs.Maintain(true)
	defer c.runs.Maintain(false)
	ctx, cancel := c.whileLeased(ctx)
	defer cancel()
	fleet.Keeper{
		Engine: c.links.engine, Clusters: c.watched(), Clock: c.options.Clock, CareInterval: c.options.Pace.CareInterval,
		Repair: c.repair, Care: c.careForAll, SetsOf: c.members.fleet.SetsOf,
	}.Keep(ctx)
	return c.lostLease()
}

// watched are the clusters of the landscape, and the API servers of its Shoots.
func (c *Converger) watched() []*apply.Cluster {
	out := slices.Collect(maps.Values(c.links.clusters))
	for _, o := range c.ours() {
		if o.Input.Owner.Kind == owner.Shoot && o.Target != nil {
			out = append(out, o.Target)
		}
	}
	return out
}

// careForAll judges all owners, and notes in the leases which clusters were judged.
func (c *Converger) careForAll(ctx context.Context) {
	started := c.options.Clock.Now()
	c.members.fleet.Care(ctx)
	// A judgement that could not be written is made again in the next round.
	missed := map[string]bool{}
	for _, m := range c.members.fleet.Owners() {
		cluster, name := leaseOf(m)
		missed[cluster+" "+name] = missed[cluster+" "+name] || m.unjudged
	}
	for _, l := range c.heldLeases() {
		if !missed[l.cluster+" "+l.name] {
			l.noteJudged(started)
		}
	}
}
