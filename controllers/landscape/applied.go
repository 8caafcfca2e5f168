package landscape

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// NewApplied is New for a landscape with invalid or unreadable files. Its owners come from the
// inventories in the runtime cluster, and it supports only Status. It uses only landscape.yaml of
// the files.
func NewApplied(l *landscapes.Landscape, options Options) (*Converger, error) {
	c, err := connect(l, options)
	if err != nil {
		return nil, err
	}
	c.members.applied = true
	return c, nil
}

// ReachableClusters returns the clusters to which landscape.yaml or the command line gives access:
// runtime, virtual, then the others. It replaces ClusterNames when the Seeds are unknown.
func (a Access) ReachableClusters(l *landscapes.Landscape) []string {
	seeds := map[string]bool{}
	for name := range a.ByName {
		seeds[name] = true
	}
	if declared := l.Config.Spec.Clusters; declared != nil {
		for name := range declared.Seeds {
			seeds[name] = true
		}
	}
	delete(seeds, Runtime)
	delete(seeds, Virtual)
	return append([]string{Runtime, Virtual}, slices.Sorted(maps.Keys(seeds))...)
}

// findApplied sets the owners from the inventories.
func (c *Converger) findApplied(ctx context.Context) {
	c.members.all, c.members.unbound = nil, nil
	var others []string
	for _, name := range []string{Runtime, Virtual} {
		entries, err := c.declarationInventory(name).Load(ctx)
		if err != nil {
			ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: inventoryName(c.landscape.Config.Name, name)}
			c.members.unbound = append(c.members.unbound, wordsError{c.links.clusters[Runtime].Explain(ref, "read what was applied", err)})
			continue
		}
		for _, e := range entries {
			c.placeApplied(ctx, e.Ref)
		}
		if len(entries) > 0 {
			others = append(others, fmt.Sprintf("%d on cluster %s", len(entries), name))
		}
	}
	switch {
	case len(c.members.all) > 0 || len(c.members.unbound) > 0:
	case len(others) > 0:
		c.members.unbound = append(c.members.unbound, fmt.Errorf("what was applied before stays, and has no conditions to show, as no Garden, Seed or Shoot is among it; objects: %s", strings.Join(others, ", ")))
	default:
		c.members.unbound = append(c.members.unbound, fmt.Errorf("nothing of landscape %s was applied to cluster %s yet", c.landscape.Config.Name, Runtime))
	}
}

// placeApplied adds an owner with its clusters, and ignores other objects.
func (c *Converger) placeApplied(ctx context.Context, ref apply.Ref) {
	if !isOwner(ref.GroupKind()) || ref.Kind == "Project" {
		return
	}
	name := render.Owner{Kind: strings.ToLower(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
	o := owner.Owner{Input: render.Input{Owner: name}, Ref: ref, Home: c.links.clusters[Virtual]}
	local := Runtime
	switch name.Kind {
	case owner.Garden:
		o.Home, o.Target = c.links.clusters[Runtime], c.links.clusters[Virtual]
	case owner.Seed:
		local = ref.Name
	case owner.Shoot:
		local = c.seedOf(ctx, ref)
	}
	o.Local = c.links.clusters[local]
	if o.Home == nil || o.Local == nil {
		c.members.unbound = append(c.members.unbound, fmt.Errorf("%s: %w", name, c.noAccess(&o, local)))
		return
	}
	c.add(o)
}

// seedOf returns the Seed of a Shoot; the virtual garden if unknown, because it has the status of
// the Shoot.
func (c *Converger) seedOf(ctx context.Context, ref apply.Ref) string {
	if c.links.clusters[Virtual] == nil {
		return Virtual
	}
	live, err := c.links.clusters[Virtual].Get(ctx, ref)
	if err != nil {
		return Virtual
	}
	for _, field := range []string{"status", "spec"} {
		if name, _, _ := unstructured.NestedString(live.Object, field, "seedName"); name != "" {
			return name
		}
	}
	return Virtual
}
