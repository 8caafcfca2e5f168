// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// ContinueDeletion continues a deletion and reports whether the ManagedResource no longer exists.
func (r *Reconciler) ContinueDeletion(ctx context.Context, namespace, name string) (out *Outcome, gone bool, err error) {
	obj, err := r.Source.GetLive(ctx, managedResourceRef(namespace, name))
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, r.Source.Explain(managedResourceRef(namespace, name), "read", err)
	}
	mr, err := Decode(r.Source, obj)
	if err != nil {
		return nil, false, err
	}
	if mr.DeletionTimestamp == nil {
		return nil, false, fmt.Errorf("ManagedResource %s/%s on %s is not being deleted", namespace, name, r.Source.Name())
	}
	out, err = r.deleteObjects(ctx, mr)
	return out, false, err
}

// ReleaseObjects removes the finalizer of a ManagedResource that is being deleted, keeps its
// objects and returns their inventory.
func (r *Reconciler) ReleaseObjects(ctx context.Context, namespace, name string) ([]apply.Entry, error) {
	mr, err := r.Read(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if mr.DeletionTimestamp == nil {
		return nil, nil
	}
	entries, err := r.TransferableEntries(ctx, mr)
	if err != nil {
		return nil, err
	}
	return entries, r.dropFinalizer(ctx, mr, r.withRememberedDigests(mr.UID, mr.Status.Resources))
}

// Delete requests the deletion of a ManagedResource; Finish continues it. It ignores a missing
// ManagedResource.
func (r *Reconciler) Delete(ctx context.Context, live *unstructured.Unstructured) error {
	at := managedResourceRef(live.GetNamespace(), live.GetName())
	mapping, err := r.Source.Mapping(ctx, at.GVK())
	if err != nil {
		return r.Source.Explain(at, "delete", err)
	}
	err = r.Source.Dynamic().Resource(mapping.Resource).Namespace(at.Namespace).
		Delete(ctx, at.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(live.GetUID())}})
	if err != nil && !apierrors.IsNotFound(err) {
		return r.Source.Explain(at, "delete", err)
	}
	return nil
}

// DeleteKeepingObjects deletes a ManagedResource, even if its deletion has started, and keeps its
// objects: another set has them.
func (r *Reconciler) DeleteKeepingObjects(ctx context.Context, namespace, name string) error {
	live, err := r.Source.GetLive(ctx, managedResourceRef(namespace, name))
	if err == nil && live.GetDeletionTimestamp() == nil {
		if err := r.Delete(ctx, live); err != nil {
			return err
		}
		live, err = r.Source.GetLive(ctx, managedResourceRef(namespace, name))
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return r.Source.Explain(managedResourceRef(namespace, name), "read", err)
	}
	mr, err := Decode(r.Source, live)
	if err != nil {
		return err
	}
	return r.dropFinalizer(ctx, mr, r.withRememberedDigests(mr.UID, mr.Status.Resources))
}

// TransferableEntries returns the inventory of a ManagedResource for the set that takes it over.
// Each entry names the current owner.
func (r *Reconciler) TransferableEntries(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) ([]apply.Entry, error) {
	entries, err := r.newInventory(mr).Load(ctx)
	if err != nil {
		return nil, err
	}
	return r.Engine.EntriesFromSet(r.NameOfSet(mr.Namespace, mr.Name), entries), nil
}

// InheritInventory adds the inventories of other sets, whose objects it takes over, to a
// ManagedResource. Its own entries win.
func (r *Reconciler) InheritInventory(ctx context.Context, namespace, name string, entries []apply.Entry) error {
	mr, err := r.Read(ctx, namespace, name)
	if err != nil {
		return err
	}
	inventory := r.newInventory(mr)
	own, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	return inventory.Save(ctx, apply.MergeEntries(own, entries))
}
