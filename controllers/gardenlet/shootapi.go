package gardenlet

import (
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// connectShoot gives a Shoot the connection to its API server, which stays the same from job to job.
func (g *Gardenlet) connectShoot(at *site, o *owner.Owner) error {
	if at.kind != owner.Shoot || o.Target != nil {
		return nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.api == nil {
		if err := owner.ConnectShoot(o, g.Outside, apply.ClusterOptions{Clock: g.Clock}); err != nil {
			return err
		}
		at.api, at.controlPlane = o.Target, o.ControlPlane()
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
	at.api.Close()
	at.api = nil
}
