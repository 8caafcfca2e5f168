package gardenlet

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/drift"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// connectShoot gives a Shoot the connection to its API server, which stays the same from job to job. What is applied over it is watched from then on.
func (g *Gardenlet) connectShoot(ctx context.Context, at *site, o *owner.Owner) error {
	if at.kind != owner.Shoot || o.Target != nil {
		return nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.api == nil {
		if err := owner.ConnectShoot(o, g.Outside, landscape.Fence(g.sure), apply.ClusterOptions{Clock: g.Clock}); err != nil {
			return err
		}
		at.api, at.controlPlane = o.Target, o.ControlPlane()
		until, end := context.WithCancel(context.WithoutCancel(ctx))
		at.unwatch = end
		go func() {
			select {
			case g.joining <- drift.Joining{Context: until, Cluster: o.Target}:
			case <-until.Done():
			}
		}()
	}
	o.Target = at.api
	return nil
}

// disconnect ends what is done in the API server of a Shoot that is none of this seed any more.
func (g *Gardenlet) disconnect(at *site) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.api == nil {
		return
	}
	g.tokens.Stop(at.controlPlane)
	at.unwatch()
	at.api.Close()
	g.engine.Forget(at.api)
	at.api = nil
}
