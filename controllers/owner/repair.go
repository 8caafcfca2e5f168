package owner

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// A repair comes when somebody has changed something, whatever a reconciliation is at. It deletes
// nothing. A bundle that was applied as it is rendered is applied again; of one that is rendered
// otherwise since, only what was applied is brought back: the rest has its turn in the flow.

// Repaired is what a repair could not bring back.
type Repaired struct {
	// Held is what the gate holds.
	Held []permit.HeldObjects
	// Left are objects that are declared otherwise by now than they were applied last: they are as
	// somebody left them until a reconciliation applies that.
	Left []apply.Ref
	// Ignored says that nothing was looked at, because an annotation of the ManagedResource wants
	// that.
	Ignored bool
}

func (r *Reconciler) repair(ctx context.Context, o *subject, setID string) (done Repaired, found bool, err error) {
	for _, b := range o.Bundles() {
		work := r.repairOf(o, b)
		if setName(o.Input.Owner, b.Name) == setID {
			_, err := work.applyBundle(ctx, b)
			return Repaired{Held: work.report.Held, Left: work.left}, true, err
		}
		if b.Delivery.Direct {
			if work.pending && r.isManaged(ctx, o, b, setID) {
				return Repaired{}, true, fmt.Errorf("bundle %s: %w", b.Name, errDelivery)
			}
			continue
		}
		rm, err := r.resourceManager(o, b)
		if err != nil {
			continue
		}
		if rm.SetName(b.Namespace, b.Name) == setID {
			ignored, err := work.managedStays(ctx, b, rm)
			switch {
			case ignored:
				return Repaired{Ignored: true}, true, nil
			case err == nil:
				_, err = work.applyManaged(ctx, b)
				if !work.pending && (err == nil || ctx.Err() == nil) {
					o.note(func(s *State) { s.sent(b.Name, err) })
				}
			case !work.pending:
				_, err = work.applyBundle(ctx, b) // with its ManagedResource, as it should be
			}
			return Repaired{Held: work.report.Held}, true, err
		}
	}
	return Repaired{}, false, nil
}

// repairOf is a run that applies a bundle again that was applied, or brings back what was applied
// of one that is rendered otherwise since.
func (r *Reconciler) repairOf(o *subject, b render.Bundle) *run {
	return &run{reconciler: r, owner: o, report: &Report{}, repairing: true, pending: !o.isApplied(b)}
}

// errDelivery is why nothing is repaired of a bundle that is delivered otherwise from now on: how
// it was applied is known to its former delivery only.
var errDelivery = errors.New("it is delivered otherwise than it was applied last (delivery.direct): the next reconciliation does that, and repairs it")

// isManaged tells whether a set is that of the ManagedResource that a bundle has which is direct
// from now on.
func (r *Reconciler) isManaged(ctx context.Context, o *subject, b render.Bundle, setID string) bool {
	live, err := o.Local.Get(ctx, managedRef(b))
	if err != nil {
		return false
	}
	rm, err := r.managerOf(o, b, live)
	return err == nil && rm.SetName(b.Namespace, b.Name) == setID
}

// repairDirect brings back what was applied of a direct bundle. What else is rendered of it by now
// is not there to be waited for.
func (r *run) repairDirect(ctx context.Context, b render.Bundle, cluster *apply.Cluster, objects []*unstructured.Unstructured) error {
	inventory := r.reconciler.inventory(r.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	if carriers, _ := split(b, entries); len(carriers) > 0 {
		return errDelivery
	}
	result, err := r.reconciler.Engine.Apply(ctx, cluster, directSet(r.owner, b, objects), inventory, r.options(b))
	r.countAll(result)
	return err
}

// repairManaged has the objects of a ManagedResource brought back as it declares them. What is
// rendered of it by now is not applied yet.
func (r *run) repairManaged(ctx context.Context, b render.Bundle) (waiter, error) {
	rm, err := r.reconciler.resourceManager(r.owner, b)
	if err != nil {
		return waiter{}, err
	}
	if ignored, err := r.managedStays(ctx, b, rm); err != nil || ignored {
		return waiter{}, err
	}
	return r.applyManaged(ctx, b)
}

// managedStays is an error for a ManagedResource that is not as it was applied: what somebody made
// of it must not reach its objects, which would go with it should it be deleted, or have another
// class.
func (r *run) managedStays(ctx context.Context, b render.Bundle, rm *managedresource.Reconciler) (ignored bool, _ error) {
	live, err := r.owner.Local.GetLive(ctx, managedRef(b))
	if apierrors.IsNotFound(err) {
		return false, fmt.Errorf("ManagedResource %s/%s is not there: the next reconciliation makes it", b.Namespace, b.Name)
	}
	if err != nil {
		return false, r.owner.Local.Explain(managedRef(b), "read", err)
	}
	mr, err := managedresource.Decode(r.owner.Local, live)
	if err != nil {
		return false, err
	}
	if mr.DeletionTimestamp != nil {
		return false, fmt.Errorf("ManagedResource %s/%s is being deleted: the next reconciliation makes it anew", b.Namespace, b.Name)
	}
	if class := ptr.Deref(mr.Spec.Class, ""); class != b.Delivery.Class {
		return false, fmt.Errorf("ManagedResource %s/%s has the class %q instead of %q: the next reconciliation gives it that", b.Namespace, b.Name, class, b.Delivery.Class)
	}
	if managedresource.IsIgnored(mr) {
		return true, nil
	}
	if changed := rm.Changed(ctx, mr); changed != "" {
		return false, fmt.Errorf("ManagedResource %s/%s %s: the next reconciliation makes it what it was, and repairs its objects", b.Namespace, b.Name, changed)
	}
	return false, nil
}

// isApplied tells whether a bundle was applied as it is rendered.
func (o *subject) isApplied(b render.Bundle) bool {
	return o.now().applied[b.Name] == renderingOf(b)
}

// renderingOf tells renderings of a bundle apart.
func renderingOf(b render.Bundle) string {
	return fmt.Sprint(b.Cluster, b.Namespace, b.Delivery, b.Digest)
}
