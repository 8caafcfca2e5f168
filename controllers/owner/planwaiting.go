// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// planWaiting compares a bundle with the declaration in its ManagedResource, because its API server
// is not served or its webhooks do not answer. Objects that were never applied are creations.
func (r *Reconciler) planWaiting(ctx context.Context, o *ownerSession, b render.Bundle) ([]change.Item, int, error) {
	name := o.ClusterName(b)
	former := b
	var err error
	if former.Objects, err = r.previouslyDeclared(ctx, o, b); err != nil {
		return nil, 0, err
	}
	found := plan.CompareBundles([]plan.ClusterBundle{{Cluster: name, Bundle: former}}, []plan.ClusterBundle{{Cluster: name, Bundle: b}})
	for i := range found.Items {
		item := &found.Items[i]
		item.Owner, item.Component, item.Bundle = o.String(), b.Component, b.Name
		if item.Reason == "" {
			item.Reason = "it waits: " + o.waitReason(b)
		}
	}
	return found.Items, found.Unchanged, nil
}

// previouslyDeclared returns the applied objects that the ManagedResource of a bundle declares. For
// a direct bundle, only its cluster knows the applied objects, so previouslyDeclared assumes the
// new declaration.
func (r *Reconciler) previouslyDeclared(ctx context.Context, o *ownerSession, b render.Bundle) ([]render.Object, error) {
	known, _, err := r.recordedObjects(ctx, o, b)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	applied := map[apply.Ref]bool{}
	for _, e := range known {
		applied[e.Ref] = true
	}
	declared := b.Objects
	if !b.Delivery.Direct {
		if declared, err = r.declaredInDataSecret(ctx, o, b); err != nil {
			return nil, err
		}
	}
	var out []render.Object
	for _, obj := range declared {
		if applied[apply.RefOf(obj.Unstructured)] {
			out = append(out, obj)
		}
	}
	return out, nil
}

// declaredInDataSecret returns the objects in the data Secret of a bundle's ManagedResource.
func (r *Reconciler) declaredInDataSecret(ctx context.Context, o *ownerSession, b render.Bundle) ([]render.Object, error) {
	rm, err := r.resourceManager(o, b)
	if err != nil {
		return nil, err
	}
	mr, err := rm.Read(ctx, b.Namespace, b.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	objects, _, err := rm.DeclaredObjects(ctx, mr)
	if err != nil {
		return nil, err
	}
	out := make([]render.Object, 0, len(objects))
	for _, obj := range objects {
		out = append(out, render.Object{Unstructured: obj})
	}
	return out, nil
}

// planWaitingRemoval returns the deletions of an orphan that wait for its API server.
func planWaitingRemoval(o *ownerSession, b render.Bundle, entries []apply.Entry) []change.Item {
	var out []change.Item
	for _, e := range entries {
		out = append(out, change.Item{
			Cluster: o.ClusterName(b), Owner: o.String(), Bundle: b.Name, Object: e.Ref, Action: change.Delete,
			Reason: "its component is no longer enabled; it is deleted once the API server of the Shoot is served",
		})
	}
	return out
}
