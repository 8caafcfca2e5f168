// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
)

// The functions below compare a landscape that others run with the declarations in Git
// (commands/adoption).

// DefaultedGarden returns the Garden of Git with the defaults of its API.
func (c *Converger) DefaultedGarden() (map[string]any, error) {
	for _, o := range c.members.all {
		if garden := o.Input.Objects["garden"]; o.Input.Owner.Kind == owner.Garden && garden != nil {
			return garden, nil
		}
	}
	return nil, errors.New("the landscape declares no Garden that can be reached")
}

// RenderedObjects returns the objects of all owners of this part of the landscape, as the last plan
// rendered them.
func (c *Converger) RenderedObjects() []plan.ClusterBundle {
	var out []plan.ClusterBundle
	for _, o := range c.members.all {
		out = append(out, plan.AssignClusters(o.state().Bundles(), o.ClusterName)...)
	}
	return out
}

// ManagedResourceNames returns the "namespace/name" of the ManagedResources that the last plan
// rendered, by the cluster that contains them.
func (c *Converger) ManagedResourceNames() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, o := range c.members.all {
		for _, b := range o.state().Bundles() {
			if b.Delivery.Direct {
				continue
			}
			if out[o.Local.Name()] == nil {
				out[o.Local.Name()] = map[string]bool{}
			}
			out[o.Local.Name()][b.Namespace+"/"+b.Name] = true
		}
	}
	return out
}

// PlanSecrets returns the secrets that the secrets manager would generate for the Garden and the
// Seeds, by cluster. It writes nothing.
func (c *Converger) PlanSecrets(ctx context.Context) (map[string][]owner.PlannedSecret, error) {
	out := map[string][]owner.PlannedSecret{}
	var problems []error
	for _, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Shoot {
			continue
		}
		if err := c.loadLiveOwner(ctx, o); err != nil {
			if !errors.As(err, new(*apply.FollowsError)) {
				problems = append(problems, fmt.Errorf("%s: %w", o, err))
			}
			continue
		}
		found, err := c.members.reconciler.PlanSecrets(ctx, o.Owner, o.state())
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", o, err))
			continue
		}
		out[o.Local.Name()] = append(out[o.Local.Name()], found...)
	}
	return out, errors.Join(problems...)
}

// SeedNames returns the names of the declared seeds that have access.
func (c *Converger) SeedNames() []string {
	var out []string
	for _, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Seed {
			out = append(out, o.Input.Owner.Name)
		}
	}
	return out
}

// IsDeclared reports whether the files of the landscape contain an object for a cluster.
func (c *Converger) IsDeclared(cluster string, ref change.Ref) bool {
	d := splitByCluster(c.landscape)[cluster]
	return d != nil && slices.ContainsFunc(d.objects, func(o *unstructured.Unstructured) bool {
		at := change.RefOf(o)
		return at.GroupKind() == ref.GroupKind() && at.Namespace == ref.Namespace && at.Name == ref.Name
	})
}
