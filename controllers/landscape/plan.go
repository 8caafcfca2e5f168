package landscape

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
)

// Plan says what Apply would change on every cluster, by server-side dry run. Nothing is written. With an error the plan is
// incomplete, and a note says so.
func (c *Converger) Plan(ctx context.Context) (plan.Plan, error) {
	p := plan.Plan{From: "live", To: "landscape " + c.landscape.Config.Name}
	problems := append([]error{}, c.unbound...)
	totals := map[string]int{}
	add := func(items []plan.Item, unchanged int, err error) {
		p.Items = append(p.Items, items...)
		p.Unchanged += unchanged
		if err != nil {
			problems = append(problems, err)
		}
	}
	parts := split(c.landscape)
	for _, name := range []string{Runtime, Virtual} {
		if c.clusters[name] != nil {
			add(c.planDeclarations(ctx, name, parts[name]))
		} else {
			problems = append(problems, fmt.Errorf("declarations of the %s cluster: no access to it: set spec.clusters.%s in landscape.yaml, or give --kubeconfig %s=PATH", name, name, name))
		}
	}
	for _, o := range c.all {
		if err := c.identify(ctx, o); err != nil && !errors.As(err, new(*owner.FollowsError)) {
			problems = append(problems, fmt.Errorf("%s: %w", o, err))
			continue
		}
		items, unchanged, err := c.owners.Plan(ctx, o)
		if err != nil {
			err = fmt.Errorf("%s: %w", o, err)
		}
		add(items, unchanged, err)
		for _, b := range o.Bundles() {
			totals[o.ClusterName(b)] += len(b.Objects)
		}
	}
	p.Sort()
	c.options.Gate.Apply(&p, totals)
	err := errors.Join(problems...)
	if found := owner.Problems(err); len(found) > 0 {
		p.Notes = append(p.Notes, "incomplete: what these problems concern could not be compared: "+strings.Join(found, "; "))
	}
	return p, err
}

func (c *Converger) planDeclarations(ctx context.Context, cluster string, d *declarations) ([]plan.Item, int, error) {
	s := c.declarationSet(cluster, d)
	found, err := c.engine.Plan(ctx, c.clusters[cluster], s, c.declarationInventory(cluster), apply.ApplyOptions{
		ApprovePrune: func(entries []apply.Entry) []apply.Held {
			held, _ := c.judge(cluster, entries, len(s.Objects))
			return held
		},
	})
	for i := range found.Items {
		found.Items[i].Owner, found.Items[i].Bundle = "landscape "+c.landscape.Config.Name, "declarations"
	}
	return found.Items, found.Unchanged, err
}
