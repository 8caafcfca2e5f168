package gardenlet

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// shootAPI is the connection to the API server of a Shoot, as long as this gardenlet has it.
// site.mu is held for it.
type shootAPI struct {
	// api is nil before the Shoot was converged. unwatch ends the watches of what was applied
	// there.
	api     *apply.Cluster
	unwatch context.CancelFunc
	// controlPlane is the namespace of its control plane.
	controlPlane string
}

// connectShoot gives a Shoot the connection to its API server, which stays the same from job to
// job. What is applied over it is watched from then on.
func (g *Gardenlet) connectShoot(ctx context.Context, at *site, o *owner.Owner) error {
	if at.kind != owner.Shoot || o.Target != nil {
		return nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.shoot.api == nil {
		if err := owner.ConnectShoot(o, g.options.Outside, landscape.Fence(g.sure), apply.ClusterOptions{Clock: g.options.Clock}); err != nil {
			return err
		}
		at.shoot.api, at.shoot.controlPlane = o.Target, o.ControlPlane()
		until, end := context.WithCancel(context.WithoutCancel(ctx))
		at.shoot.unwatch = end
		go func() {
			select {
			case g.joining <- fleet.Joining{Context: until, Cluster: o.Target}:
			case <-until.Done():
			}
		}()
	}
	o.Target = at.shoot.api
	return nil
}

// disconnect ends what is done in the API server of a Shoot that is none of this seed any more.
func (g *Gardenlet) disconnect(at *site) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.shoot.api == nil {
		return
	}
	g.services.tokens.Stop(at.shoot.controlPlane)
	at.shoot.unwatch()
	at.shoot.api.Close()
	g.links.engine.Forget(at.shoot.api)
	at.shoot.api = nil
}
