// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// maintainOwners repairs drift on the seed and in the API servers of its Shoots, and checks health.
// It skips owners that a job works on. It also works while the virtual garden is unreachable.
func (g *Gardenlet) maintainOwners(ctx context.Context) {
	fleet.DriftRepairer{
		Engine: g.connections.engine, Clusters: []*apply.Cluster{g.connections.local}, AddedClusters: g.newShootClusters, Clock: g.options.Clock, CareInterval: g.options.Timing.CareInterval,
		Repair: g.fleet.Repair, Care: g.checkOwnerHealth, SetsOf: g.fleet.SetsOf,
	}.Run(ctx)
}

// checkOwnerHealth checks the health of the owners concurrently.
func (g *Gardenlet) checkOwnerHealth(ctx context.Context) {
	began := g.options.Clock.Now()
	releasing := &owner.Reconciler{Engine: g.connections.engine, Clock: g.options.Clock}
	if err := releasing.ReleaseTerminating(ctx, g.connections.local); err != nil && ctx.Err() == nil {
		g.options.Log.Info("cannot release the ManagedResources of deleted control planes yet", "error", err)
	}
	g.fleet.Care(ctx)
	g.mu.Lock()
	lease := g.heartbeatState.lease
	g.mu.Unlock()
	lease.RecordHealthCheck(began)
}
