// SPDX-License-Identifier: Apache-2.0

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

// defaultCareInterval is the default interval of health checks (upstream: 30 s).
const defaultCareInterval = 30 * time.Second

// Maintain repairs drift and checks health until the context ends. Apply must have run before:
// owners without its lease are ignored. Maintain returns an error when a lease is lost. Reviews and
// approvals do not apply to its writes.
func (c *Converger) Maintain(ctx context.Context) error {
	c.runs.SetMaintaining(true)
	defer c.runs.SetMaintaining(false)
	ctx, cancel := c.withLeaseContext(ctx)
	defer cancel()
	fleet.DriftRepairer{
		Engine: c.connections.engine, Clusters: c.watchedClusters(), Clock: c.options.Clock, CareInterval: c.options.Timing.CareInterval,
		Repair: c.repairDrift, Care: c.checkHealth, SetsOf: c.members.fleet.SetsOf,
	}.Run(ctx)
	return c.leaseError()
}

// watchedClusters returns the clusters of the landscape, and the API servers of its Shoots.
func (c *Converger) watchedClusters() []*apply.Cluster {
	out := slices.Collect(maps.Values(c.connections.clusters))
	for _, o := range c.ownersWithLease() {
		if o.Input.Owner.Kind == owner.Shoot && o.Target != nil {
			out = append(out, o.Target)
		}
	}
	return out
}

// checkHealth checks the health of all owners, and records in the leases which clusters are
// complete.
func (c *Converger) checkHealth(ctx context.Context) {
	started := c.options.Clock.Now()
	c.members.fleet.Care(ctx)
	// The next round repeats a check whose result could not be written.
	missed := map[string]bool{}
	for _, m := range c.members.fleet.Owners() {
		cluster, name := leaseOf(m)
		missed[cluster+" "+name] = missed[cluster+" "+name] || m.hasUnwrittenHealth
	}
	for _, l := range c.ownLeases() {
		if !missed[l.cluster+" "+l.name] {
			l.recordHealthCheck(started)
		}
	}
}
