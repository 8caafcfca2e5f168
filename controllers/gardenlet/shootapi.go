// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// shootAPI is the gardenlet's connection to the API server of a Shoot, guarded by site.mu.
type shootAPI struct {
	// api is nil before the first reconciliation of the Shoot. unwatch ends the watches of the
	// objects that were applied over it.
	api     *apply.Cluster
	unwatch context.CancelFunc
	// controlPlane is the namespace of the Shoot's control plane.
	controlPlane string
}

// connectShoot sets the connection of a Shoot to its API server. All jobs share it. From then on,
// applied objects are watched.
func (g *Gardenlet) connectShoot(ctx context.Context, at *ownerWorker, o *owner.Owner) error {
	if at.kind != owner.Shoot || o.Target != nil {
		return nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.shoot.api == nil {
		if err := owner.ConnectShoot(o, g.options.OutsideCluster, landscape.NewWriteFence(g.isSoleWriter), apply.ClusterOptions{Clock: g.options.Clock}); err != nil {
			return err
		}
		at.shoot.api, at.shoot.controlPlane = o.Target, o.ControlPlane()
		until, end := context.WithCancel(context.WithoutCancel(ctx))
		at.shoot.unwatch = end
		go func() {
			select {
			case g.newShootClusters <- fleet.AddedCluster{Context: until, Cluster: o.Target}:
			case <-until.Done():
			}
		}()
	}
	o.Target = at.shoot.api
	return nil
}

// disconnect closes the connection to the API server of a Shoot that left this seed.
func (g *Gardenlet) disconnect(at *ownerWorker) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.shoot.api == nil {
		return
	}
	g.services.tokens.Stop(at.shoot.controlPlane)
	at.shoot.unwatch()
	at.shoot.api.Close()
	g.connections.engine.ForgetCluster(at.shoot.api)
	at.shoot.api = nil
}
