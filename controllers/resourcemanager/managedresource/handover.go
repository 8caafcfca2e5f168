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

// Finish goes on with a deletion and says whether the ManagedResource is gone.
func (r *Reconciler) Finish(ctx context.Context, namespace, name string) (out *Outcome, gone bool, err error) {
	obj, err := r.Source.GetLive(ctx, ref(namespace, name))
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, r.Source.Explain(ref(namespace, name), "read", err)
	}
	mr, err := Decode(r.Source, obj)
	if err != nil {
		return nil, false, err
	}
	if mr.DeletionTimestamp == nil {
		return nil, false, fmt.Errorf("ManagedResource %s/%s on %s is not being deleted", namespace, name, r.Source.Name())
	}
	out, err = r.delete(ctx, mr)
	return out, false, err
}

// Release lets a ManagedResource that is being deleted go and leaves its objects in place. It
// returns their inventory.
func (r *Reconciler) Release(ctx context.Context, namespace, name string) ([]apply.Entry, error) {
	mr, err := r.get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if mr.DeletionTimestamp == nil {
		return nil, nil
	}
	entries, err := r.Contents(ctx, mr)
	if err != nil {
		return nil, err
	}
	return entries, r.dropFinalizer(ctx, mr, r.recalled(mr.UID, mr.Status.Resources))
}

// Delete asks for the deletion of a ManagedResource; Finish goes on with it. That it is gone
// already is no error.
func (r *Reconciler) Delete(ctx context.Context, live *unstructured.Unstructured) error {
	at := ref(live.GetNamespace(), live.GetName())
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

// Dissolve deletes a ManagedResource, whether or not somebody does already, and leaves its objects
// in place: another set has them.
func (r *Reconciler) Dissolve(ctx context.Context, namespace, name string) error {
	live, err := r.Source.GetLive(ctx, ref(namespace, name))
	if err == nil && live.GetDeletionTimestamp() == nil {
		if err := r.Delete(ctx, live); err != nil {
			return err
		}
		live, err = r.Source.GetLive(ctx, ref(namespace, name))
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return r.Source.Explain(ref(namespace, name), "read", err)
	}
	mr, err := Decode(r.Source, live)
	if err != nil {
		return err
	}
	return r.dropFinalizer(ctx, mr, r.recalled(mr.UID, mr.Status.Resources))
}

// Contents are the inventory of a ManagedResource for another set that goes on with it: every entry
// says whose the object is until then.
func (r *Reconciler) Contents(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) ([]apply.Entry, error) {
	entries, err := r.newInventory(mr).Load(ctx)
	if err != nil {
		return nil, err
	}
	return r.Engine.From(r.SetName(mr.Namespace, mr.Name), entries), nil
}

// Inherit gives a ManagedResource the inventories of those whose objects it goes on with. What it
// knows itself stays.
func (r *Reconciler) Inherit(ctx context.Context, namespace, name string, entries []apply.Entry) error {
	mr, err := r.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	inventory := r.newInventory(mr)
	own, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	return inventory.Save(ctx, apply.Union(own, entries))
}
