package owner

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// planWaiting compares a bundle with what its ManagedResource declares, for an API server that
// nobody serves, and so nobody can be asked, or webhooks that nobody answers: what was never
// applied is to be created.
func (r *Reconciler) planWaiting(ctx context.Context, o *subject, b render.Bundle) ([]change.Item, int, error) {
	name := o.ClusterName(b)
	former := b
	var err error
	if former.Objects, err = r.declaredBefore(ctx, o, b); err != nil {
		return nil, 0, err
	}
	found := plan.Bundles([]plan.Place{{Cluster: name, Bundle: former}}, []plan.Place{{Cluster: name, Bundle: b}})
	for i := range found.Items {
		item := &found.Items[i]
		item.Owner, item.Component, item.Bundle = o.String(), b.Component, b.Name
		if item.Reason == "" {
			item.Reason = "it waits: " + o.whyWaits(b)
		}
	}
	return found.Items, found.Unchanged, nil
}

// declaredBefore are the objects that the ManagedResource of a bundle declares, and that were
// applied. Of a direct bundle nobody else than its cluster knows what they look like: they are
// taken for what is wanted.
func (r *Reconciler) declaredBefore(ctx context.Context, o *subject, b render.Bundle) ([]render.Object, error) {
	known, _, err := r.known(ctx, o, b)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	applied := map[apply.Ref]bool{}
	for _, e := range known {
		applied[e.Ref] = true
	}
	declared := b.Objects
	if !b.Delivery.Direct {
		if declared, err = r.declaredBy(ctx, o, b); err != nil {
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

// declaredBy are the objects in the data Secret of the ManagedResource of a bundle.
func (r *Reconciler) declaredBy(ctx context.Context, o *subject, b render.Bundle) ([]render.Object, error) {
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
	objects, _, err := rm.Declared(ctx, mr)
	if err != nil {
		return nil, err
	}
	out := make([]render.Object, 0, len(objects))
	for _, obj := range objects {
		out = append(out, render.Object{Unstructured: obj})
	}
	return out, nil
}

// planWaitingRemoval is what a bundle loses that is not rendered any more, once somebody serves the
// API server that has its objects.
func planWaitingRemoval(o *subject, b render.Bundle, entries []apply.Entry) []change.Item {
	var out []change.Item
	for _, e := range entries {
		out = append(out, change.Item{
			Cluster: o.ClusterName(b), Owner: o.String(), Bundle: b.Name, Object: e.Ref, Action: change.Delete,
			Reason: "its component is not enabled any more; it goes when somebody serves the API server of the Shoot",
		})
	}
	return out
}
