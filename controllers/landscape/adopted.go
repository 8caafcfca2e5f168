package landscape

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
)

// The functions below compare a landscape that others run with the declarations in Git
// (commands/adoption).

// DefaultedGarden is the Garden of Git with the defaults of its API.
func (c *Converger) DefaultedGarden() (map[string]any, error) {
	for _, o := range c.members.all {
		if garden := o.Input.Objects["garden"]; o.Input.Owner.Kind == owner.Garden && garden != nil {
			return garden, nil
		}
	}
	return nil, errors.New("the landscape declares no Garden that can be reached")
}

// Rendered are the objects of all owners that this part of the landscape has, as the last plan has
// rendered them.
func (c *Converger) Rendered() []plan.Place {
	var out []plan.Place
	for _, o := range c.members.all {
		out = append(out, plan.Placed(o.now().Bundles(), o.ClusterName)...)
	}
	return out
}

// Carriers are the namespaces and names of the ManagedResources that the last plan has rendered, by
// the cluster that has them.
func (c *Converger) Carriers() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, o := range c.members.all {
		for _, b := range o.now().Bundles() {
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

// PlanSecrets says what the Garden and the Seeds would get from the secrets manager, by cluster.
// Nothing is written.
func (c *Converger) PlanSecrets(ctx context.Context) (map[string][]owner.PlannedSecret, error) {
	out := map[string][]owner.PlannedSecret{}
	var problems []error
	for _, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Shoot {
			continue
		}
		if err := c.identify(ctx, o); err != nil {
			if !errors.As(err, new(*owner.FollowsError)) {
				problems = append(problems, fmt.Errorf("%s: %w", o, err))
			}
			continue
		}
		found, err := c.members.reconciler.PlanSecrets(ctx, o.Owner, o.now())
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", o, err))
			continue
		}
		out[o.Local.Name()] = append(out[o.Local.Name()], found...)
	}
	return out, errors.Join(problems...)
}

// Seeds are the names of the seeds that the landscape declares and that can be reached.
func (c *Converger) Seeds() []string {
	var out []string
	for _, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Seed {
			out = append(out, o.Input.Owner.Name)
		}
	}
	return out
}

// Declares tells whether the files of the landscape have an object for a cluster.
func (c *Converger) Declares(cluster string, ref change.Ref) bool {
	d := split(c.landscape)[cluster]
	return d != nil && slices.ContainsFunc(d.objects, func(o *unstructured.Unstructured) bool {
		at := change.RefOf(o)
		return at.GroupKind() == ref.GroupKind() && at.Namespace == ref.Namespace && at.Name == ref.Name
	})
}
