// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/namespacepolicies"
)

// maintainNetworkPolicies maintains the network policies of namespaces in the runtime cluster while
// a Garden exists, by any converger.
func (p *runningOperator) maintainNetworkPolicies(ctx context.Context) {
	config := rest.CopyConfig(p.role.Config)
	config.UserAgent, config.WarningHandler = userAgent, rest.NoWarnings{}
	config.Wrap(landscape.NewWriteFence(p.hasLease))
	// Clients log their watches to the operator's log.
	ctx = logr.NewContext(ctx, logr.FromSlogHandler(p.role.Log.Handler()))
	c, err := namespacepolicies.New(config, namespacepolicies.Options{Role: namespacepolicies.RoleOperator, ExtraNamespaces: p.role.PolicyNamespaces, Clock: p.role.Clock, Log: p.role.Log})
	if err != nil {
		p.role.Log.Error("cannot maintain the network policies of namespaces", "error", err)
		return
	}
	var group sync.WaitGroup
	group.Go(func() { c.Run(ctx) })
	group.Go(func() {
		if err := namespacepolicies.FollowGarden(ctx, config, c, p.role.Log); err != nil {
			p.role.Log.Error("cannot maintain the network policies of namespaces", "error", err)
		}
	})
	group.Wait()
}
