// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/namespacepolicies"
)

// detectGarden finds out whether the seed is also the Garden's runtime cluster (gardener:
// pkg/gardenlet, SeedIsGarden). There, the Garden owns shared objects. A failed request is an
// error, because two owners of one object would overwrite each other.
func (g *Gardenlet) detectGarden(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	list, err := g.connections.local.Dynamic().Resource(operatorv1alpha1.SchemeGroupVersion.WithResource("gardens")).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) { // the kind does not exist
		return g.connections.local.Explain(apply.Ref{APIVersion: operatorv1alpha1.SchemeGroupVersion.String(), Kind: "Garden"}, "look for", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isGarden = err == nil && len(list.Items) > 0
	return nil
}

// setPolicyNetworks sets the networks of the namespaces' network policies. In the Garden's runtime
// cluster the operator maintains these policies. Without a Seed nothing changes.
func (g *Gardenlet) setPolicyNetworks(seed *unstructured.Unstructured) {
	g.mu.Lock()
	isGarden := g.isGarden
	g.mu.Unlock()
	switch {
	case isGarden:
		g.services.policies.Suspend()
	case seed != nil:
		networks, err := namespacepolicies.NetworksOfSeed(seed)
		if err != nil {
			g.options.Log.Error("network policies of namespaces stay unchanged", "error", err)
			return
		}
		g.services.policies.SetNetworks(networks)
	}
}

// waitForGardenDetection retries detectGarden until it succeeds; it returns false if ctx ends
// first.
func (g *Gardenlet) waitForGardenDetection(ctx context.Context) bool {
	for {
		err := g.detectGarden(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		g.options.Log.Warn("nothing is reconciled until the gardenlet knows whether the seed hosts a Garden", "error", err)
		timer := g.options.Clock.NewTimer(g.options.Timing.RetryInterval)
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
