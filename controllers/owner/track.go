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

// watchTheRest watches drift of applied objects in bundles that a run did not process: after a
// restart, nothing else does so before a complete run. It also rechecks drift that could not be
// repaired, which may match the declaration now.
func (r *run) watchTheRest(ctx context.Context) {
	if ctx.Err() != nil { // a sync that times out ends, and its applied objects are maintained
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, trackTimeout)
	defer cancel()
	local, remote := []render.Bundle{}, []render.Bundle{}
	for _, b := range r.owner.Bundles() {
		if b.Cluster == targets[r.owner.Input.Owner.Kind] {
			remote = append(remote, b)
		} else {
			local = append(local, b)
		}
	}
	for _, b := range append(local, remote...) { // an unreachable target delays no other bundle
		if ctx.Err() != nil {
			return
		}
		r.track(ctx, b)
	}
}

// track watches drift of a bundle's applied objects. It ignores errors: the next apply reports
// them.
func (r *run) track(ctx context.Context, b render.Bundle) {
	o, home := r.owner, r.owner.Local
	inventory := r.reconciler.inventory(o, b)
	isCarrier := func(e apply.Entry) bool { return carrierOf(b, e.Ref) }
	entries, err := inventory.Load(ctx)
	if err != nil {
		return
	}
	if carriers, _ := split(b, entries); b.Delivery.Direct && len(carriers) == 0 {
		if home, err = o.cluster(b.Cluster); err == nil && r.isServed(ctx, b) {
			_ = r.reconciler.Engine.Track(ctx, home, setName(o.Input.Owner, b.Name), FieldManager, inventory)
		}
		return
	}
	_ = r.reconciler.Engine.Track(ctx, home, setName(o.Input.Owner, b.Name), FieldManager, apply.Part(inventory, isCarrier))
	live, err := home.Get(ctx, managedRef(b))
	if err != nil || !r.isServed(ctx, b) {
		return
	}
	rm, err := r.reconciler.managerOf(o, b, live)
	if err != nil {
		return
	}
	mr, err := managedresource.Decode(home, live)
	if err != nil {
		return
	}
	s := rm.Set(mr, nil)
	_ = r.reconciler.Engine.Track(ctx, rm.Target, s.Name, s.FieldManager, rm.Inventory(mr))
}

// isServed reports whether the cluster of a bundle is served; false for errors.
func (r *run) isServed(ctx context.Context, b render.Bundle) bool {
	served, err := r.serving.reaches(ctx, r.owner, b)
	return err == nil && served
}
