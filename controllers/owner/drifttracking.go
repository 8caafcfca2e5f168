// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// trackTimeout is the time limit for reading the applied objects of bundles that a run did not
// process.
const trackTimeout = 10 * time.Second

// trackUnprocessedBundles watches drift of applied objects in bundles that a run did not process:
// after a restart, nothing else watches them before a complete run. It also rechecks drift that
// could not be repaired, which may match the declaration now.
func (r *run) trackUnprocessedBundles(ctx context.Context) {
	if ctx.Err() != nil { // a sync that times out ends, and its applied objects are maintained
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, trackTimeout)
	defer cancel()
	local, remote := []render.Bundle{}, []render.Bundle{}
	for _, b := range r.owner.Bundles() {
		if b.Cluster == targetRoles[r.owner.Input.Owner.Kind] {
			remote = append(remote, b)
		} else {
			local = append(local, b)
		}
	}
	for _, b := range append(local, remote...) { // an unreachable target delays no other bundle
		if ctx.Err() != nil {
			return
		}
		r.trackBundle(ctx, b)
	}
}

// trackBundle watches drift of a bundle's applied objects. It ignores errors: the next apply
// reports them.
func (r *run) trackBundle(ctx context.Context, b render.Bundle) {
	o, home := r.owner, r.owner.Local
	inventory := r.reconciler.inventory(o, b)
	isCarrier := func(e apply.Entry) bool { return isDeliveryObjectOf(b, e.Ref) }
	entries, err := inventory.Load(ctx)
	if err != nil {
		return
	}
	if carriers, _ := splitInventory(b, entries); b.Delivery.Direct && len(carriers) == 0 {
		if home, err = o.clusterForRole(b.Cluster); err == nil && r.isClusterServed(ctx, b) {
			_ = r.reconciler.Engine.TrackSet(ctx, home, nameOfSet(o.Input.Owner, b.Name), FieldManager, inventory)
		}
		return
	}
	_ = r.reconciler.Engine.TrackSet(ctx, home, nameOfSet(o.Input.Owner, b.Name), FieldManager, apply.FilterInventory(inventory, isCarrier))
	live, err := home.Get(ctx, bundleManagedResourceRef(b))
	if err != nil || !r.isClusterServed(ctx, b) {
		return
	}
	rm, err := r.reconciler.reconcilerForClass(o, b, live)
	if err != nil {
		return
	}
	mr, err := managedresource.Decode(home, live)
	if err != nil {
		return
	}
	s := rm.Set(mr, nil)
	_ = r.reconciler.Engine.TrackSet(ctx, rm.Target, s.Name, s.FieldManager, rm.Inventory(mr))
}

// isClusterServed reports whether the cluster of a bundle is served; it is false for errors.
func (r *run) isClusterServed(ctx context.Context, b render.Bundle) bool {
	served, err := r.serving.isReachable(ctx, r.owner, b)
	return err == nil && served
}
