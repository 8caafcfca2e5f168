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

// A repair reacts to a drift event, at any point of a reconciliation. It deletes nothing. A bundle
// whose current rendering was applied is applied again. Otherwise only its applied objects are
// restored: the flow applies the rest.

// Repaired has the objects that a repair could not restore.
type Repaired struct {
	// Held are the deletions that the gate holds.
	Held []permit.HeldObjects
	// Left are objects whose declaration has changed since their last apply. They stay drifted
	// until a reconciliation applies the new declaration.
	Left []apply.Ref
	// Ignored means that an annotation of the ManagedResource disables repairs.
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
				_, err = work.applyBundle(ctx, b) // including its ManagedResource
			}
			return Repaired{Held: work.report.Held}, true, err
		}
	}
	return Repaired{}, false, nil
}

// repairOf returns a run that applies a bundle again, or only restores its applied objects if its
// rendering has changed since.
func (r *Reconciler) repairOf(o *subject, b render.Bundle) *run {
	return &run{reconciler: r, owner: o, report: &Report{}, repairing: true, pending: !o.isApplied(b)}
}

// errDelivery is the error for a bundle with a new delivery: only the old delivery knows its
// applied objects.
var errDelivery = errors.New("it is delivered otherwise than it was applied last (delivery.direct): the next reconciliation does that, and repairs it")

// isManaged reports whether a set belongs to the existing ManagedResource of a bundle that is now
// direct.
func (r *Reconciler) isManaged(ctx context.Context, o *subject, b render.Bundle, setID string) bool {
	live, err := o.Local.Get(ctx, managedRef(b))
	if err != nil {
		return false
	}
	rm, err := r.managerOf(o, b, live)
	return err == nil && rm.SetName(b.Namespace, b.Name) == setID
}

// repairDirect restores the applied objects of a direct bundle. It does not wait for newly rendered
// ones.
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

// repairManaged restores the objects of a ManagedResource as it declares them. The new rendering is
// not applied yet.
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

// managedStays returns an error if a ManagedResource differs from its last apply. Its changes must
// not affect its objects, for example by a deletion or another class.
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

// isApplied reports whether the current rendering of a bundle was applied.
func (o *subject) isApplied(b render.Bundle) bool {
	return o.now().applied[b.Name] == renderingOf(b)
}

// renderingOf returns a string that differs between renderings of a bundle.
func renderingOf(b render.Bundle) string {
	return fmt.Sprint(b.Cluster, b.Namespace, b.Delivery, b.Digest)
}
