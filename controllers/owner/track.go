package owner

import (
	"context"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// trackTimeout is how long it may take to find out what was applied of the bundles that a run did
// not come to.
const trackTimeout = 10 * time.Second

// watchTheRest has drift told of what was applied of the bundles that a run did not come to: after
// a restart nobody else knows of them until one does. And what could not be repaired is looked at
// again: it may be declared as it was applied by now.
func (r *run) watchTheRest(ctx context.Context) {
	if ctx.Err() != nil { // a sync that takes too long ends, and what it has applied is kept
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
	for _, b := range append(local, remote...) { // a target that does not answer is in nobody's way
		if ctx.Err() != nil {
			return
		}
		r.track(ctx, b)
	}
}

// track has drift of a bundle told as it was applied last. What cannot be read is found out when it
// is applied.
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

// isServed tells whether somebody serves the cluster of a bundle, as far as that can be told.
func (r *run) isServed(ctx context.Context, b render.Bundle) bool {
	served, err := r.serving.reaches(ctx, r.owner, b)
	return err == nil && served
}
