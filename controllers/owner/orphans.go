package owner

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// judge asks the deletion gate about the objects a bundle wants to lose. All deletions of one run on
// one cluster count together.
func (r *run) judge(role string, entries []apply.Entry) []apply.Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted == nil {
		r.deleted = map[string]int{}
	}
	cluster := role
	if c, err := r.owner.cluster(role); err == nil {
		cluster = c.Name()
	}
	var refs []plan.Ref
	for _, e := range entries {
		// Data Secrets and ManagedResources are wrapping: what counts is what is in them.
		if e.Ref.Kind != "ManagedResource" {
			refs = append(refs, e.Ref)
		}
	}
	verdict := r.Gate.After(r.deleted[cluster]).Judge(cluster, refs, r.managedObjects(cluster))
	r.deleted[cluster] += len(refs) - len(verdict.Held)
	var held []apply.Held
	for _, e := range entries {
		if reason, ok := verdict.Held[e.Ref]; ok {
			held = append(held, apply.Held{Ref: e.Ref, Reason: reason})
		}
	}
	if len(held) > 0 {
		r.report.Held = append(r.report.Held, held...)
		r.report.Approval = verdict.ID
	}
	return held
}

// managedObjects is the size of what a share is taken of.
func (r *run) managedObjects(cluster string) int {
	n := 0
	for _, b := range r.owner.Bundles() {
		if c, err := r.owner.cluster(b.Cluster); err == nil && c.Name() == cluster {
			n += len(b.Objects)
		}
	}
	return n
}

// orphan is a bundle that is in the cluster and not rendered any more.
type orphan struct {
	bundle render.Bundle
	order  int
}

// orphans finds them by their inventories.
func (r *Reconciler) orphans(ctx context.Context, o *Owner, rendered []render.Bundle) ([]orphan, error) {
	selector := labels.SelectorFromSet(labels.Set{LabelInventory: ownerLabel(o.Input.Owner)})
	list, err := o.Local.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, InventoryNamespace, selector)
	if err != nil {
		return nil, fmt.Errorf("read the inventories of %s on %s: %w", o, o.Local.Name(), err)
	}
	wanted := map[string]bool{}
	for _, b := range rendered {
		wanted[b.Name] = true
	}
	position, err := r.positions(o)
	if err != nil {
		return nil, err
	}
	var out []orphan
	for _, cm := range list {
		l := cm.GetLabels()
		if wanted[l[LabelBundle]] {
			continue
		}
		out = append(out, orphan{order: position[l[LabelBundle]], bundle: render.Bundle{
			Name: l[LabelBundle], Owner: o.Input.Owner, Cluster: l[LabelCluster], Namespace: o.Input.Owner.ControlPlaneNamespace,
			Delivery: render.Delivery{Direct: l[LabelDelivery] == deliveryDirect},
		}})
	}
	// Last in the flow, first to go.
	sort.Slice(out, func(i, j int) bool {
		if out[i].order != out[j].order {
			return out[i].order > out[j].order
		}
		return out[i].bundle.Name > out[j].bundle.Name
	})
	return out, nil
}

// positions of bundles in the order of the flow.
func (r *Reconciler) positions(o *Owner) (map[string]int, error) {
	definition, err := render.LoadFlow(r.Render.Catalogue, "reconcile", o.Input)
	if err != nil {
		return nil, err
	}
	work := &run{Reconciler: r, owner: o, report: &Report{}}
	order, err := work.graph(definition, render.Result{}).Order()
	if err != nil {
		return nil, err
	}
	rank := map[string]int{}
	for i, id := range order {
		rank[id] = i
	}
	out := map[string]int{}
	for _, n := range definition.Nodes {
		for _, b := range n.Bundles {
			out[b] = rank[n.ID]
		}
	}
	return out, nil
}

// removeOrphans deletes bundles whose component was disabled, in reverse order. It runs only after
// the flow succeeded.
func (r *run) removeOrphans(ctx context.Context, rendered []render.Bundle) error {
	list, err := r.orphans(ctx, r.owner, rendered)
	if err != nil {
		return err
	}
	var problems []error
	for _, o := range list {
		if err := r.removeBundle(ctx, o.bundle); err != nil {
			problems = append(problems, fmt.Errorf("remove bundle %s: %w", o.bundle.Name, err))
		}
	}
	return errors.Join(problems...)
}

// removeBundle deletes the objects of a bundle and then its inventory.
func (r *run) removeBundle(ctx context.Context, b render.Bundle) error {
	if !b.Delivery.Direct {
		done, err := r.removeManaged(ctx, b)
		if err != nil || !done {
			return err
		}
	}
	cluster, err := r.owner.cluster(b.Cluster)
	if err != nil {
		return err
	}
	if !b.Delivery.Direct {
		cluster = r.owner.Local
	}
	result, err := r.Engine.Delete(ctx, cluster, set(r.owner, b, nil), r.inventory(r.owner, b), apply.DeleteOptions{
		Approve:          func(entries []apply.Entry) []apply.Held { return r.judge(b.Cluster, entries) },
		DesiredElsewhere: r.desiredElsewhere(b),
		OnObject: func(res apply.ObjectResult) {
			if r.OnObject != nil {
				r.OnObject(r.owner.String(), b.Name, res)
			}
		},
	})
	r.count(result)
	return err
}

// removeManaged deletes a ManagedResource and waits for its objects to go. It says false when the
// gate holds them.
func (r *run) removeManaged(ctx context.Context, b render.Bundle) (bool, error) {
	ref := apply.Ref{APIVersion: "resources.gardener.cloud/v1alpha1", Kind: "ManagedResource", Namespace: b.Namespace, Name: b.Name}
	obj, err := r.owner.Local.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	class, _, _ := unstructured.NestedString(obj.Object, "spec", "class")
	b.Delivery.Class = class
	rm, err := r.resourceManager(r.owner, b)
	if err != nil {
		return false, err
	}
	mr, err := rm.Read(ctx, b.Namespace, b.Name)
	if err != nil {
		return false, err
	}
	var entries []apply.Entry
	for _, res := range mr.Status.Resources {
		entries = append(entries, apply.Entry{Ref: apply.Ref{APIVersion: res.APIVersion, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name}})
	}
	if mr.DeletionTimestamp == nil {
		if held := r.judge(b.Cluster, entries); len(held) > 0 {
			return false, nil
		}
		mapping, err := r.owner.Local.Mapping(ctx, ref.GVK())
		if err != nil {
			return false, err
		}
		uid := obj.GetUID()
		err = r.owner.Local.Dynamic().Resource(mapping.Resource).Namespace(b.Namespace).
			Delete(ctx, b.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return true, r.awaitManagedGone(ctx, rm, ref, b)
}

func (r *run) awaitManagedGone(ctx context.Context, rm managedDeleter, ref apply.Ref, b render.Bundle) error {
	tick := r.Clock.NewTicker(time.Second)
	defer tick.Stop()
	deadline := r.Clock.Now().Add(2 * time.Minute)
	for {
		gone, err := rm.Finish(ctx, b.Namespace, b.Name)
		if gone || err != nil && !r.Clock.Now().Before(deadline) {
			return err
		}
		if !r.Clock.Now().Before(deadline) {
			return fmt.Errorf("%s is still being deleted after 2m", ref)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C():
		}
	}
}

// managedDeleter goes on with the deletion of a ManagedResource.
type managedDeleter interface {
	Finish(ctx context.Context, namespace, name string) (gone bool, err error)
}
