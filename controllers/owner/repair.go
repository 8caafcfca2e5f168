// SPDX-License-Identifier: Apache-2.0

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

// RepairResult has the objects that a repair could not restore.
type RepairResult struct {
	// Held are the deletions that the gate holds.
	Held []permit.HeldObjects
	// Unrepaired are objects whose declaration has changed since their last apply. They stay
	// drifted until a reconciliation applies the new declaration.
	Unrepaired []apply.Ref
	// Ignored means that an annotation of the ManagedResource disables repairs.
	Ignored bool
}

func (r *Reconciler) repair(ctx context.Context, o *ownerSession, setID string) (done RepairResult, found bool, err error) {
	for _, b := range o.Bundles() {
		work := r.newRepair(o, b)
		if nameOfSet(o.Input.Owner, b.Name) == setID {
			_, err := work.applyBundle(ctx, b)
			return RepairResult{Held: work.report.Held, Unrepaired: work.unrepaired}, true, err
		}
		if b.Delivery.Direct {
			if work.hasNewRendering && r.isManagedSet(ctx, o, b, setID) {
				return RepairResult{}, true, fmt.Errorf("bundle %s: %w", b.Name, errDeliveryChanged)
			}
			continue
		}
		rm, err := r.resourceManager(o, b)
		if err != nil {
			continue
		}
		if rm.NameOfSet(b.Namespace, b.Name) == setID {
			ignored, err := work.checkManagedUnchanged(ctx, b, rm)
			switch {
			case ignored:
				return RepairResult{Ignored: true}, true, nil
			case err == nil:
				_, err = work.reconcileManagedResource(ctx, b)
				if !work.hasNewRendering && (err == nil || ctx.Err() == nil) {
					o.updateState(func(s *State) { s.recordApply(b.Name, err) })
				}
			case !work.hasNewRendering:
				_, err = work.applyBundle(ctx, b) // including its ManagedResource
			}
			return RepairResult{Held: work.report.Held}, true, err
		}
	}
	return RepairResult{}, false, nil
}

// newRepair returns a run that applies a bundle again, or only restores its applied objects if its
// rendering has changed since.
func (r *Reconciler) newRepair(o *ownerSession, b render.Bundle) *run {
	return &run{reconciler: r, owner: o, report: &Report{}, isRepair: true, hasNewRendering: !o.isApplied(b)}
}

// errDeliveryChanged is the error for a bundle with a new delivery: only the old delivery knows its
// applied objects.
var errDeliveryChanged = errors.New("its delivery changed since the last apply (delivery.direct): the next reconciliation applies and repairs it")

// isManagedSet reports whether a set belongs to the existing ManagedResource of a bundle that is
// now direct.
func (r *Reconciler) isManagedSet(ctx context.Context, o *ownerSession, b render.Bundle, setID string) bool {
	live, err := o.Local.Get(ctx, bundleManagedResourceRef(b))
	if err != nil {
		return false
	}
	rm, err := r.reconcilerForClass(o, b, live)
	return err == nil && rm.NameOfSet(b.Namespace, b.Name) == setID
}

// repairDirect restores the applied objects of a direct bundle. It does not wait for newly rendered
// ones.
func (r *run) repairDirect(ctx context.Context, b render.Bundle, cluster *apply.Cluster, objects []*unstructured.Unstructured) error {
	inventory := r.reconciler.inventory(r.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	if carriers, _ := splitInventory(b, entries); len(carriers) > 0 {
		return errDeliveryChanged
	}
	result, err := r.reconciler.Engine.Apply(ctx, cluster, newDirectSet(r.owner, b, objects), inventory, r.applyOptions(b))
	r.countResult(result)
	return err
}

// repairManaged restores the objects of a ManagedResource as it declares them. The new rendering is
// not applied yet.
func (r *run) repairManaged(ctx context.Context, b render.Bundle) (waiter, error) {
	rm, err := r.reconciler.resourceManager(r.owner, b)
	if err != nil {
		return waiter{}, err
	}
	if ignored, err := r.checkManagedUnchanged(ctx, b, rm); err != nil || ignored {
		return waiter{}, err
	}
	return r.reconcileManagedResource(ctx, b)
}

// checkManagedUnchanged returns an error if a ManagedResource differs from its last apply. Its
// changes must not affect its objects, for example by a deletion or another class.
func (r *run) checkManagedUnchanged(ctx context.Context, b render.Bundle, rm *managedresource.Reconciler) (ignored bool, _ error) {
	live, err := r.owner.Local.GetLive(ctx, bundleManagedResourceRef(b))
	if apierrors.IsNotFound(err) {
		return false, fmt.Errorf("ManagedResource %s/%s does not exist: the next reconciliation creates it", b.Namespace, b.Name)
	}
	if err != nil {
		return false, r.owner.Local.Explain(bundleManagedResourceRef(b), "read", err)
	}
	mr, err := managedresource.Decode(r.owner.Local, live)
	if err != nil {
		return false, err
	}
	if mr.DeletionTimestamp != nil {
		return false, fmt.Errorf("ManagedResource %s/%s is being deleted: the next reconciliation recreates it", b.Namespace, b.Name)
	}
	if class := ptr.Deref(mr.Spec.Class, ""); class != b.Delivery.Class {
		return false, fmt.Errorf("ManagedResource %s/%s has the class %q instead of %q: the next reconciliation corrects it", b.Namespace, b.Name, class, b.Delivery.Class)
	}
	if managedresource.IsIgnored(mr) {
		return true, nil
	}
	if changed := rm.ChangeSinceApply(ctx, mr); changed != "" {
		return false, fmt.Errorf("ManagedResource %s/%s %s: the next reconciliation restores it, and repairs its objects", b.Namespace, b.Name, changed)
	}
	return false, nil
}

// isApplied reports whether the current rendering of a bundle was applied.
func (o *ownerSession) isApplied(b render.Bundle) bool {
	return o.currentState().appliedRenderings[b.Name] == renderingID(b)
}

// renderingID returns a string that differs between renderings of a bundle.
func renderingID(b render.Bundle) string {
	return fmt.Sprint(b.Cluster, b.Namespace, b.Delivery, b.Digest)
}
