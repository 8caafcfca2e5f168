// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// A bundle may change between direct delivery and a ManagedResource. Its objects stay: the new
// inventory gets the old entries before the old delivery ends, so that an interrupted run forgets
// or deletes no object. Both deliveries use the same inventory ConfigMap. With direct delivery it
// holds the objects, otherwise the ManagedResource with its data Secrets, and during a change both.

// isDeliveryObjectOf reports whether an object is the ManagedResource of a bundle, or one of its
// data Secrets.
func isDeliveryObjectOf(b render.Bundle, ref apply.Ref) bool {
	if ref.Namespace != b.Namespace {
		return false
	}
	return ref.GroupKind() == bundleManagedResourceRef(b).GroupKind() && ref.Name == b.Name ||
		ref.GroupKind() == schema.GroupKind{Kind: "Secret"} && strings.HasPrefix(ref.Name, changecounts.DataSecretPrefix+b.Name+"-")
}

// splitInventory divides the inventory of a bundle into carriers and objects.
func splitInventory(b render.Bundle, entries []apply.Entry) (carriers, objects []apply.Entry) {
	for _, e := range entries {
		if isDeliveryObjectOf(b, e.Ref) {
			carriers = append(carriers, e)
		} else {
			objects = append(objects, e)
		}
	}
	return carriers, objects
}

// recordedObjects returns the objects that a bundle has on its cluster with any delivery; mixed
// reports whether the previous delivery still has some.
func (r *Reconciler) recordedObjects(ctx context.Context, o *ownerSession, b render.Bundle) (known []apply.Entry, mixed bool, err error) {
	entries, err := r.inventory(o, b).Load(ctx)
	if err != nil {
		return nil, false, err
	}
	carriers, objects := splitInventory(b, entries)
	if b.Delivery.Direct {
		if len(carriers) == 0 {
			return objects, false, nil
		}
		_, contents, err := r.previousManagedResource(ctx, o, b)
		return apply.MergeEntries(objects, contents), true, err
	}
	rm, err := r.resourceManager(o, b)
	if err != nil {
		return nil, false, err
	}
	inventory, err := managedInventory(ctx, rm, b)
	if err != nil {
		return nil, false, err
	}
	managed, err := inventory.Load(ctx)
	if err != nil {
		return nil, false, err
	}
	return apply.MergeEntries(managed, r.Engine.EntriesFromSet(nameOfSet(o.Input.Owner, b.Name), objects)), len(objects) > 0, nil
}

// previousManagedResource returns the reconciler of the ManagedResource that still delivers a
// bundle, and its contents, or nil if it does not exist.
func (r *Reconciler) previousManagedResource(ctx context.Context, o *ownerSession, b render.Bundle) (*managedresource.Reconciler, []apply.Entry, error) {
	live, err := o.Local.GetLive(ctx, bundleManagedResourceRef(b))
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, o.Local.Explain(bundleManagedResourceRef(b), "read", err)
	}
	rm, err := r.reconcilerForClass(o, b, live)
	if err != nil {
		return nil, nil, err
	}
	mr, err := managedresource.Decode(o.Local, live)
	if err != nil {
		return nil, nil, err
	}
	contents, err := rm.TransferableEntries(ctx, mr)
	return rm, contents, err
}

// reconcilerForClass returns the reconciler for the class of a live ManagedResource.
func (r *Reconciler) reconcilerForClass(o *ownerSession, b render.Bundle, live *unstructured.Unstructured) (*managedresource.Reconciler, error) {
	b.Delivery.Class, _, _ = unstructured.NestedString(live.Object, "spec", "class")
	return r.resourceManager(o, b)
}

// migrateToDirect copies the contents of a bundle's ManagedResource to the inventory of the direct
// bundle. Then it removes the ManagedResource and its data Secrets; the objects stay. It does
// nothing without a ManagedResource.
func (r *run) migrateToDirect(ctx context.Context, b render.Bundle) error {
	inventory := r.reconciler.inventory(r.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	carriers, _ := splitInventory(b, entries)
	if len(carriers) == 0 {
		return nil
	}
	rm, contents, err := r.reconciler.previousManagedResource(ctx, r.owner, b)
	if err != nil {
		return err
	}
	if rm != nil {
		if err := inventory.Save(ctx, apply.MergeEntries(entries, contents)); err != nil {
			return fmt.Errorf("copy the inventory of ManagedResource %s/%s: %w", b.Namespace, b.Name, err)
		}
		if err := rm.DeleteKeepingObjects(ctx, b.Namespace, b.Name); err != nil {
			return err
		}
		managed := apply.ObjectResult{Ref: bundleManagedResourceRef(b), Action: apply.Deleted, Message: "its objects stay: they are applied directly now"}
		r.countResults(managed)
		r.objectReporter(b)(managed)
	}
	s := newSet(r.owner, b, nil)
	s.KeepObjects = false
	result, err := r.reconciler.Engine.Delete(ctx, r.owner.Local, s, apply.FilterInventory(inventory, func(e apply.Entry) bool { return isDeliveryObjectOf(b, e.Ref) }),
		apply.DeleteOptions{OnObject: skipResult(bundleManagedResourceRef(b), r.objectReporter(b))})
	r.countResult(result)
	return err
}

// migrateToManaged moves the inventory of a direct bundle to its ManagedResource; the objects stay.
func (r *run) migrateToManaged(ctx context.Context, b render.Bundle, inventory apply.Inventory, carried, objects []apply.Entry) error {
	carried = apply.MergeEntries(carried, r.reconciler.Engine.EntriesFromSet(nameOfSet(r.owner.Input.Owner, b.Name), objects))
	if len(carried) == 0 {
		return nil
	}
	rm, err := r.reconciler.resourceManager(r.owner, b)
	if err != nil {
		return err
	}
	if err := rm.InheritInventory(ctx, b.Namespace, b.Name, carried); err != nil || len(objects) == 0 {
		return err
	}
	return apply.FilterInventory(inventory, func(e apply.Entry) bool { return !isDeliveryObjectOf(b, e.Ref) }).Save(ctx, nil)
}

// kindsOnCluster returns the kinds of all bundles of an owner on one cluster.
func kindsOnCluster(o *ownerSession, b render.Bundle) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, other := range append(o.Bundles(), b) {
		if other.Cluster != b.Cluster {
			continue
		}
		for _, obj := range other.Objects {
			if gvk := obj.GroupVersionKind(); !slices.Contains(out, gvk) {
				out = append(out, gvk)
			}
		}
	}
	return out
}
