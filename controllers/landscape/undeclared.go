// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// UndeclaredObject is an object that was applied from Git, and that Git no longer declares.
type UndeclaredObject struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// HoldReason is why it is held; it is empty if the next apply deletes it, within the deletion
	// gate.
	HoldReason string `json:"held,omitempty"`
}

// undeclaredObjects returns the undeclared objects of the inventories. The Landscape object gives
// the reasons why they are held. It omits inventories that cannot be read: the owners report those
// errors.
func (c *Converger) undeclaredObjects(ctx context.Context, object *ObjectStatus) []UndeclaredObject {
	if c.connections.clusters[Runtime] == nil {
		return nil
	}
	parts := splitByCluster(c.landscape)
	var out []UndeclaredObject
	for _, cluster := range []string{Runtime, Virtual} {
		entries, err := c.declarationInventory(cluster).Load(ctx)
		if err != nil {
			continue
		}
		declared := map[apply.Ref]bool{}
		for ref := range parts[cluster].sources {
			declared[versionlessRef(ref)] = true
		}
		for _, s := range parts[cluster].undecryptable {
			declared[versionlessRef(s.ref)] = true
		}
		gone := slices.DeleteFunc(slices.Clone(entries), func(e apply.Entry) bool { return declared[versionlessRef(e.Ref)] })
		referred := heldReferences(gone, func(e apply.Entry) bool { return isOwnerKind(e.GroupKind()) && !c.isDeletionConfirmed(ctx, e.Ref) },
			// see judge.holdReferenced
			func(ref apply.Ref) []crosscheck.ReferencedObject { return c.referencesOf(ctx, cluster, ref) })
		for _, e := range gone {
			u := UndeclaredObject{Cluster: cluster, Object: e.Ref, HoldReason: object.holdReason(cluster, e.Ref)}
			if holder, is := referred[e.Ref]; is {
				u.HoldReason = ReferenceHoldText(holder)
			}
			if isOwnerKind(e.GroupKind()) && !c.isDeletionConfirmed(ctx, e.Ref) {
				u.HoldReason = c.connections.clusters[cluster].RewriteKubectlOrNameCluster(RemovalHoldText(e.Ref))
			}
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b UndeclaredObject) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return out
}

// versionlessRef returns a key for an object across all versions of its kind.
func versionlessRef(ref apply.Ref) apply.Ref {
	if group, _, found := strings.Cut(ref.APIVersion, "/"); found {
		ref.APIVersion = group
	} else {
		ref.APIVersion = ""
	}
	return ref
}
