// SPDX-License-Identifier: Apache-2.0

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

// NewFromInventories is New for a landscape with invalid or unreadable files. Its owners come from
// the inventories in the runtime cluster, and it supports only Status. It uses only landscape.yaml
// of the files.
func NewFromInventories(l *landscapes.Landscape, options Options) (*Converger, error) {
	c, err := newConverger(l, options)
	if err != nil {
		return nil, err
	}
	c.members.fromInventories = true
	return c, nil
}

// ClustersWithAccess returns the clusters to which landscape.yaml or the command line gives access:
// runtime, virtual, then the others. It replaces ClusterNames when the Seeds are unknown.
func (a Access) ClustersWithAccess(l *landscapes.Landscape) []string {
	seeds := map[string]bool{}
	for name := range a.KubeconfigByCluster {
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

// loadAppliedOwners sets the owners from the inventories.
func (c *Converger) loadAppliedOwners(ctx context.Context) {
	c.members.all, c.members.accessErrors = nil, nil
	var others []string
	for _, name := range []string{Runtime, Virtual} {
		entries, err := c.declarationInventory(name).Load(ctx)
		if err != nil {
			ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: inventoryName(c.landscape.Config.Name, name)}
			c.members.accessErrors = append(c.members.accessErrors, textError{c.connections.clusters[Runtime].Explain(ref, "read the inventory", err)})
			continue
		}
		for _, e := range entries {
			c.addAppliedOwner(ctx, e.Ref)
		}
		if len(entries) > 0 {
			others = append(others, fmt.Sprintf("%d on cluster %s", len(entries), name))
		}
	}
	switch {
	case len(c.members.all) > 0 || len(c.members.accessErrors) > 0:
	case len(others) > 0:
		c.members.accessErrors = append(c.members.accessErrors, fmt.Errorf("previously applied objects stay, but none is a Garden, Seed or Shoot with conditions to show: %s", strings.Join(others, ", ")))
	default:
		c.members.accessErrors = append(c.members.accessErrors, fmt.Errorf("nothing of landscape %s was applied to cluster %s yet", c.landscape.Config.Name, Runtime))
	}
}

// addAppliedOwner adds an owner with its clusters, and ignores other objects.
func (c *Converger) addAppliedOwner(ctx context.Context, ref apply.Ref) {
	if !isOwnerKind(ref.GroupKind()) || ref.Kind == "Project" {
		return
	}
	name := render.Owner{Kind: strings.ToLower(ref.Kind), Namespace: ref.Namespace, Name: ref.Name}
	o := owner.Owner{Input: render.Input{Owner: name}, Ref: ref, ObjectCluster: c.connections.clusters[Virtual]}
	local := Runtime
	switch name.Kind {
	case owner.Garden:
		o.ObjectCluster, o.Target = c.connections.clusters[Runtime], c.connections.clusters[Virtual]
	case owner.Seed:
		local = ref.Name
	case owner.Shoot:
		local = c.seedOfShoot(ctx, ref)
	}
	o.Local = c.connections.clusters[local]
	if o.ObjectCluster == nil || o.Local == nil {
		c.members.accessErrors = append(c.members.accessErrors, fmt.Errorf("%s: %w", name, c.noAccessError(&o, local)))
		return
	}
	c.addOwner(o)
}

// seedOfShoot returns the Seed of a Shoot; the virtual garden if unknown, because it has the status
// of the Shoot.
func (c *Converger) seedOfShoot(ctx context.Context, ref apply.Ref) string {
	if c.connections.clusters[Virtual] == nil {
		return Virtual
	}
	live, err := c.connections.clusters[Virtual].Get(ctx, ref)
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
