package landscape

import (
	"context"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/schemas/across"
)

// Undeclared is an object that was applied from Git, and that Git no longer declares.
type Undeclared struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// Held is why it is held; empty if the next apply deletes it, within the deletion gate.
	Held string `json:"held,omitempty"`
}

// undeclared returns the undeclared objects of the inventories. The Landscape object gives the
// reasons why they are held. It omits inventories that cannot be read: the owners report those
// errors.
func (c *Converger) undeclared(ctx context.Context, object *ObjectStatus) []Undeclared {
	if c.links.clusters[Runtime] == nil {
		return nil
	}
	parts := split(c.landscape)
	var out []Undeclared
	for _, cluster := range []string{Runtime, Virtual} {
		entries, err := c.declarationInventory(cluster).Load(ctx)
		if err != nil {
			continue
		}
		declared := map[apply.Ref]bool{}
		for ref := range parts[cluster].sources {
			declared[withoutVersion(ref)] = true
		}
		for _, s := range parts[cluster].locked {
			declared[withoutVersion(s.ref)] = true
		}
		gone := slices.DeleteFunc(slices.Clone(entries), func(e apply.Entry) bool { return declared[withoutVersion(e.Ref)] })
		referred := keptWith(gone, func(e apply.Entry) bool { return isOwner(e.GroupKind()) && !c.confirmed(ctx, e.Ref) },
			// see judge.keepReferred
			func(ref apply.Ref) []across.Referred { return c.referredToBy(ctx, cluster, ref) })
		for _, e := range gone {
			u := Undeclared{Cluster: cluster, Object: e.Ref, Held: object.whyHeld(cluster, e.Ref)}
			if holder, is := referred[e.Ref]; is {
				u.Held = ReferredHeld(holder)
			}
			if isOwner(e.GroupKind()) && !c.confirmed(ctx, e.Ref) {
				u.Held = c.links.clusters[cluster].CommandsHere(RemovalHeld(e.Ref))
			}
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Undeclared) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return out
}

// withoutVersion returns a key for an object across all versions of its kind.
func withoutVersion(ref apply.Ref) apply.Ref {
	if group, _, found := strings.Cut(ref.APIVersion, "/"); found {
		ref.APIVersion = group
	} else {
		ref.APIVersion = ""
	}
	return ref
}
