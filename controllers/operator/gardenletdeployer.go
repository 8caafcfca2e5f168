// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/gardenletdeployer"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// deployGardenlets installs the gardenlets of all Gardenlet objects in the virtual garden, once it
// exists.
func (p *runningOperator) deployGardenlets(ctx context.Context) {
	runtime := rest.CopyConfig(p.role.Config)
	runtime.UserAgent, runtime.WarningHandler = userAgent, rest.NoWarnings{}
	read, err := access.NewSecretReader(runtime)
	if err != nil {
		p.role.Log.Error("cannot install gardenlets", "error", err)
		return
	}
	address := func(ctx context.Context) (string, error) { return landscape.GardenAddress(ctx, runtime) }
	source := access.VirtualGardenSource(read, p.role.Clock)
	source.Proxy = runtime.Proxy
	if p.role.OutsideCluster {
		source.ExternalURL = address
	}
	virtual := access.LazyConfig(source)
	virtual.UserAgent, virtual.WarningHandler = userAgent, rest.NoWarnings{}
	fenced := rest.CopyConfig(runtime)
	fenced.Wrap(landscape.NewWriteFence(p.hasLease))
	virtual.Wrap(landscape.NewWriteFence(p.hasLease))
	// Clients log their watches to the operator's log.
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(p.role.Log.Handler()))
	d := &gardenletdeployer.Deployer{Runtime: fenced, Virtual: virtual, Address: address, Charts: &charts.Puller{Clock: p.role.Clock}, Clock: p.role.Clock, Log: p.role.Log}
	if err := d.Run(ctx); err != nil {
		p.role.Log.Error("cannot install gardenlets", "error", err)
	}
}
