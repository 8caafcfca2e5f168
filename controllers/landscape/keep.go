package landscape

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/panics"
)

// careInterval is how often conditions are judged unless an option says otherwise (upstream: 30 s).
const careInterval = 30 * time.Second

// Keep repairs drift and judges conditions until the context ends. Apply has to have run before: what it got no lease for
// is left alone. It returns an error when a lease was lost. No review and no approval counts for what it does.
func (c *Converger) Keep(ctx context.Context) error {
	c.runs.Maintain(true)
	defer c.runs.Maintain(false)
	ctx, cancel := c.whileLeased(ctx)
	defer cancel()
	fleet.Keeper{
		Engine: c.links.engine, Clusters: c.watched(), Clock: c.options.Clock, CareInterval: c.options.Pace.CareInterval,
		Repair: c.repair, Care: c.careForAll, SetsOf: c.setsOf,
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

// careForAll judges all owners side by side, so that an unreachable cluster delays no other, and notes in the leases
// which clusters were judged.
func (c *Converger) careForAll(ctx context.Context) {
	var group sync.WaitGroup
	owners := c.ours()
	problems := make([]error, len(owners))
	started := c.options.Clock.Now()
	for i, o := range owners {
		group.Go(func() {
			var conditions []gardencorev1beta1.Condition
			// What cannot be finished now is tried again with the next round, and is no reason not to judge.
			_ = panics.Safe(func() error {
				return errors.Join(c.members.owners.FinishRemovals(ctx, o), c.members.owners.ApplyWaiting(ctx, o))
			})()
			conditions, problems[i] = c.members.owners.Care(ctx, o)
			if problems[i] == nil && c.options.Hear.OnCare != nil {
				c.options.Hear.OnCare(o.String(), conditions)
			}
		})
	}
	group.Wait()
	// A judgement that could not be written is made again in the next round.
	missed := map[string]bool{}
	for i, o := range owners {
		cluster, name := leaseOf(o)
		missed[cluster+" "+name] = missed[cluster+" "+name] || problems[i] != nil
	}
	for _, l := range c.heldLeases() {
		if !missed[l.cluster+" "+l.name] {
			l.noteJudged(started)
		}
	}
}

// setsOf gives the sets that write a ManagedResource.
func (c *Converger) setsOf(cluster string, ref apply.Ref) []string {
	var out []string
	for _, o := range c.ours() {
		if set := c.members.owners.SetOfManaged(o, cluster, ref); set != "" {
			out = append(out, set)
		}
	}
	return out
}
