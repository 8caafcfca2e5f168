// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

// checkFilters rejects owners and clusters that the landscape does not have: the object would never
// be found.
func (e *explainer) checkFilters() error {
	owner, cluster := e.opts.Owner, e.opts.Cluster
	if owner == "" && cluster == "" {
		return nil
	}
	clusters, err := landscape.ClusterNames(e.landscape)
	if err != nil {
		return err
	}
	if e.inputs, err = render.Owners(e.landscape, render.WithTime(e.opts.Now)); err != nil {
		return fmt.Errorf("render the landscape: %w", err)
	}
	seeds, err := render.SeedsOfShoots(e.landscape)
	if err != nil {
		return err
	}
	var owners []string
	meant, both := false, false
	for _, in := range e.inputs {
		owners = append(owners, in.Owner.Path())
		if in.Owner.Kind == render.ClusterShoot {
			clusters = append(clusters, render.ShootCluster(in.Owner))
		}
		called := owner == "" || in.Owner.HasName(owner)
		meant = meant || called
		both = both || called && hasObjectsOn(in.Owner, cluster, seeds)
	}
	switch {
	case !meant:
		return fmt.Errorf("--owner %s: %w", owner, unknown.NameError("owner in the landscape", owner, owners))
	case cluster == "" || both:
		return nil
	case !slices.Contains(clusters, cluster) && cluster != render.ClusterShoot:
		return fmt.Errorf("--cluster %s: %w", cluster, unknown.NameError("cluster of the landscape", cluster, clusters))
	case owner != "":
		return fmt.Errorf("--owner %s and --cluster %s: the owner has no object on that cluster; leave one of them out", owner, cluster)
	}
	return nil
}
