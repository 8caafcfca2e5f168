// SPDX-License-Identifier: Apache-2.0

package operator

import "slices"

// markShared sets the owners of objects in several inventories. An inventory lists objects before
// they are applied. It keeps unapplied entries for objects of another owner.
func markShared(owners []TreeOwner) {
	type place struct{ cluster, group, kind, namespace, name string }
	listed := map[place]map[string]bool{} // by owner, whether it applied the object
	each := func(f func(o *TreeObject, at place, owner string)) {
		for _, owner := range owners {
			for _, b := range owner.Bundles {
				for i := range b.Objects {
					ref := b.Objects[i].inventoryEntry.Ref
					f(&b.Objects[i], place{b.Cluster, ref.GVK().Group, ref.Kind, ref.Namespace, ref.Name}, owner.Owner)
				}
			}
		}
	}
	each(func(o *TreeObject, at place, owner string) {
		if listed[at] == nil {
			listed[at] = map[string]bool{}
		}
		listed[at][owner] = listed[at][owner] || o.inventoryEntry.AppliedDigest != "" || o.IsTerminating
	})
	each(func(o *TreeObject, at place, owner string) {
		var others []string
		for other, applied := range listed[at] {
			if applied && other != owner {
				others = append(others, other)
			}
		}
		slices.Sort(others)
		switch {
		case len(others) == 1 && !listed[at][owner]:
			o.OwnedBy = others[0]
		default:
			o.OtherOwners = others
		}
	})
}
