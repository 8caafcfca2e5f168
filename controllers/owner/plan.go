// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

func (r *Reconciler) plan(ctx context.Context, o *ownerSession) ([]change.Item, int, error) {
	for _, name := range requiredNamespaces(o) {
		if _, err := r.hasNamespace(ctx, o, name); err != nil {
			return nil, 0, err
		}
	}
	if err := r.readCredentials(ctx, o); err != nil {
		return nil, 0, err
	}
	facts, err := r.readFacts(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	if facts.References, err = o.useDeclaredReferences(); err != nil {
		return nil, 0, err
	}
	result, err := r.renderWith(ctx, o, facts)
	if err != nil {
		return nil, 0, err
	}
	// A changed secret request creates a new Secret, and the pods that refer to it restart. A new
	// owner has no such pods.
	if len(facts.Secrets) > 0 {
		if _, facts.Secrets, err = r.generateSecretsIn(ctx, o, result, secrets.NewDryRunStore); err != nil {
			return nil, 0, err
		}
		if result, err = r.renderWith(ctx, o, facts); err != nil {
			return nil, 0, err
		}
	}
	o.updateState(func(s *State) { s.bundles = result.Bundles })
	var items []change.Item
	var problems []error
	unchanged := 0
	r.Prerequisites.AddNamespaces(o.Local.Name(), requiredNamespaces(o)...)
	for _, b := range result.Bundles {
		for _, obj := range b.Objects {
			r.Prerequisites.Add(o.ClusterName(b), obj.Unstructured)
		}
	}
	look := &servingCache{}
	for _, b := range result.Bundles {
		found, same, err := r.planBundle(ctx, o, b, look)
		items, unchanged = append(items, found...), unchanged+same
		if err != nil {
			problems = append(problems, fmt.Errorf("bundle %s: %w", b.Name, err))
		}
	}
	gone, err := r.planOrphans(ctx, o, result.Bundles, look)
	if err != nil {
		problems = append(problems, err)
	}
	return append(items, gone...), unchanged, errors.Join(problems...)
}

func (r *Reconciler) planBundle(ctx context.Context, o *ownerSession, b render.Bundle, look *servingCache) ([]change.Item, int, error) {
	if len(b.Objects) == 0 {
		return nil, 0, fmt.Errorf("its objects are not known yet: %s", strings.Join(b.Unresolved, ", "))
	}
	cluster, err := o.clusterForRole(b.Cluster)
	if err != nil {
		return nil, 0, err
	}
	if b, err = o.withSecretValues(ctx, b, false); err != nil {
		return nil, 0, err
	}
	if served, err := look.canApply(ctx, o, b); err != nil {
		return nil, 0, err
	} else if !served {
		return r.planWaiting(ctx, o, b)
	}
	if cluster == o.Target && !access.HasCredentials(ctx, cluster.RESTConfig()) {
		// The control plane does not exist yet, so all objects are new.
		found := plan.CompareBundles(nil, []plan.ClusterBundle{{Cluster: cluster.Name(), Bundle: b}})
		for i := range found.Items {
			item := &found.Items[i]
			item.Owner, item.Component, item.Bundle = o.String(), b.Component, b.Name
		}
		return found.Items, 0, nil
	}
	objects := make([]*unstructured.Unstructured, 0, len(b.Objects))
	for _, obj := range b.Objects {
		objects = append(objects, obj.Unstructured)
	}
	s := newDirectSet(o, b, objects)
	inventory := r.inventory(o, b)
	known, mixed, err := r.recordedObjects(ctx, o, b)
	if err != nil {
		return nil, 0, err
	}
	if mixed || !b.Delivery.Direct {
		inventory, s.RebuildFrom = apply.NewMemoryInventory(known...), nil
	}
	if !b.Delivery.Direct {
		rm, err := r.resourceManager(o, b)
		if err != nil {
			return nil, 0, err
		}
		// Plan the objects as the ManagedResource reconciler sends them.
		rm.Sources = s.Sources
		if s, err = managedSet(ctx, rm, o, b, objects); err != nil {
			return nil, 0, err
		}
	}
	work := &run{reconciler: r, owner: o, report: &Report{}}
	found, err := r.Engine.Plan(ctx, cluster, s, inventory, work.applyOptions(b))
	for i := range found.Items {
		item := &found.Items[i]
		item.Owner, item.Component, item.Bundle = o.String(), b.Component, b.Name
		if item.Action == change.Hold {
			item.Approval = work.report.approvalID(item.Object)
		}
	}
	return append(found.Items, planRecreation(ctx, o, b)...), found.Unchanged, r.Prerequisites.ResolveErrors(found.Items, err)
}

// planRecreation returns the item of a ManagedResource that someone deletes: it is recreated, and
// its objects stay.
func planRecreation(ctx context.Context, o *ownerSession, b render.Bundle) []change.Item {
	if b.Delivery.Direct {
		return nil
	}
	live, err := o.Local.Get(ctx, bundleManagedResourceRef(b))
	// a missing ManagedResource shows up as new objects
	if err != nil || live.GetDeletionTimestamp() == nil {
		return nil
	}
	reason := "someone has deleted it; its objects stay"
	if others := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, resourcesv1alpha1.FinalizerName) }); len(others) > 0 {
		reason += ", and it waits for the finalizers of others: " + strings.Join(others, ", ")
	}
	return []change.Item{{
		Cluster: o.Local.Name(), Owner: o.String(), Component: b.Component, Bundle: b.Name, Object: bundleManagedResourceRef(b), Action: change.Recreate, Reason: reason,
	}}
}

// approvalID returns the id that approves an object held by the gate, or "" for other reasons.
func (r *Report) approvalID(ref apply.Ref) string {
	for _, h := range r.Held {
		for _, o := range h.Objects {
			if o.Ref == ref {
				return o.ApprovalID
			}
		}
	}
	return ""
}

// managedSet returns the objects of a bundle as its rendered ManagedResource declares them.
func managedSet(ctx context.Context, rm *managedresource.Reconciler, o *ownerSession, b render.Bundle, objects []*unstructured.Unstructured) (apply.Set, error) {
	rendered, _, err := o.objectsToApply(ctx, b)
	if err != nil {
		return apply.Set{}, err
	}
	mr, err := managedresource.Decode(o.Local, rendered[0])
	if err != nil {
		return apply.Set{}, err
	}
	return rm.Set(mr, objects), nil
}

// managedInventory reads the inventory of a ManagedResource; it is empty before the first apply.
func managedInventory(ctx context.Context, rm *managedresource.Reconciler, b render.Bundle) (apply.Inventory, error) {
	mr, err := rm.Read(ctx, b.Namespace, b.Name)
	if apierrors.IsNotFound(err) || apply.ReasonOf(err) == apply.ReasonKindNotServed || apply.ReasonOf(err) == apply.ReasonNotFound {
		return apply.NewMemoryInventory(), nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := rm.Inventory(mr).Load(ctx)
	if err != nil {
		return nil, err
	}
	return apply.NewMemoryInventory(entries...), nil
}

func (r *Reconciler) planOrphans(ctx context.Context, o *ownerSession, rendered []render.Bundle, look *servingCache) ([]change.Item, error) {
	list, err := r.orphans(ctx, o, rendered)
	if err != nil {
		return nil, err
	}
	var items []change.Item
	for _, orphan := range list {
		found, err := r.planOrphan(ctx, o, orphan, look)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", orphan.bundle.Name, err)
		}
		items = append(items, found...)
	}
	return items, nil
}

func (r *Reconciler) planOrphan(ctx context.Context, o *ownerSession, gone orphan, look *servingCache) ([]change.Item, error) {
	b := gone.bundle
	entries, err := r.orphanObjects(ctx, o, gone)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	cluster, err := o.clusterForRole(b.Cluster)
	if err != nil {
		return nil, err
	}
	s := newSet(o, b, nil)
	if !b.Delivery.Direct {
		if s, err = r.orphanedSet(ctx, o, b); err != nil {
			return nil, err
		}
	}
	if served, err := look.isReachable(ctx, o, b); err != nil {
		return nil, err
	} else if !served && s.KeepObjects {
		return nil, nil
	} else if !served {
		return planWaitingRemoval(o, b, entries), nil
	}
	work := &run{reconciler: r, owner: o, report: &Report{}}
	found, err := r.Engine.PlanDelete(ctx, cluster, s, apply.NewMemoryInventory(entries...), apply.DeleteOptions{IsDeclaredElsewhere: work.isInOtherBundle(b)})
	for i := range found.Items {
		item := &found.Items[i]
		item.Owner, item.Bundle = o.String(), b.Name
		if item.Action == change.Delete && item.Reason == "" {
			item.Reason = "its component is no longer enabled"
		}
	}
	return found.Items, err
}

// orphanedSet returns the set of a ManagedResource that is no longer rendered.
func (r *Reconciler) orphanedSet(ctx context.Context, o *ownerSession, b render.Bundle) (apply.Set, error) {
	live, err := o.Local.GetLive(ctx, bundleManagedResourceRef(b))
	if apierrors.IsNotFound(err) {
		return newSet(o, b, nil), nil
	}
	if err != nil {
		return apply.Set{}, o.Local.Explain(bundleManagedResourceRef(b), "read", err)
	}
	mr, err := managedresource.Decode(o.Local, live)
	if err != nil {
		return apply.Set{}, err
	}
	rm, err := r.reconcilerForClass(o, b, live)
	if err != nil {
		return apply.Set{}, err
	}
	return rm.Set(mr, nil), nil
}
