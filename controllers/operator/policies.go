package operator

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/namespacepolicies"
)

// keepPolicies keeps the network policies that namespaces of the runtime cluster have, as long as
// there is a Garden, whoever converges it.
func (p *parts) keepPolicies(ctx context.Context) {
	config := rest.CopyConfig(p.role.Config)
	config.UserAgent, config.WarningHandler = userAgent, rest.NoWarnings{}
	config.Wrap(landscape.Fence(p.sure))
	// What clients say of their watches goes where everything else does.
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(p.role.Log.Handler()))
	c, err := namespacepolicies.New(config, namespacepolicies.Options{MadeBy: namespacepolicies.ByOperator, Further: p.role.PolicyNamespaces, Clock: p.role.Clock, Log: p.role.Log})
	if err != nil {
		p.role.Log.Error("no network policies of namespaces are made", "error", err)
		return
	}
	var group sync.WaitGroup
	group.Go(func() { c.Run(ctx) })
	group.Go(func() {
		if err := namespacepolicies.FollowGarden(ctx, config, c, p.role.Log); err != nil {
			p.role.Log.Error("no network policies of namespaces are made", "error", err)
		}
	})
	group.Wait()
}
