// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// holdDeletions asks the deletion gate about the objects that a bundle loses. All deletions of one
// run on one cluster count together.
func (r *run) holdDeletions(role string, entries []apply.Entry) []apply.HeldObject {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deletionsByCluster == nil {
		r.deletionsByCluster = map[string]int{}
	}
	cluster := r.clusterName(role)
	var refs []change.Ref
	bundles := r.owner.Bundles()
	for _, e := range entries {
		if !changecounts.IsDeliveryObject(e.Ref) && !isReplacedByHash(e, role, bundles) && !isReferenceCopy(e) {
			refs = append(refs, e.Ref)
		}
	}
	before := r.deletionsByCluster[cluster]
	verdict := r.gateFor(entries).WithEarlierDeletions(before).Judge(cluster, refs, before+len(refs)+r.managedObjectCount(cluster))
	r.deletionsByCluster[cluster] += len(refs) - len(verdict.Held)
	held := verdict.HeldAmong(cluster, refs)
	reported := func(h permit.HeldObjects) bool { return h.Cluster == cluster && h.Approval == verdict.ID }
	// a bundle may be applied more than once
	if len(held.Objects) > 0 && !slices.ContainsFunc(r.report.Held, reported) {
		r.report.Held = append(r.report.Held, held)
	}
	return held.Objects
}

// clusterName returns the name of the cluster with a role.
func (r *run) clusterName(role string) string {
	if c, err := r.owner.clusterForRole(role); err == nil {
		return c.Name()
	}
	return role
}

// managedObjectCount returns the number of objects for the gate's share.
func (r *run) managedObjectCount(cluster string) int {
	n := 0
	for _, b := range r.owner.Bundles() {
		if c, err := r.owner.clusterForRole(b.Cluster); err == nil && c.Name() == cluster {
			n += len(b.Objects)
		}
	}
	return n
}

// orphan is a bundle that is in the cluster and no longer rendered.
type orphan struct {
	bundle       render.Bundle
	flowPosition int
	// entries are its inventory: its objects, or the ManagedResource with its data Secret.
	entries []apply.Entry
}

// orphans finds orphans by their inventories.
func (r *Reconciler) orphans(ctx context.Context, o *ownerSession, rendered []render.Bundle) ([]orphan, error) {
	selector := labels.SelectorFromSet(labels.Set{LabelInventory: ownerLabel(o.Input.Owner)})
	list, err := o.Local.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, InventoryNamespace, selector)
	if err != nil {
		return nil, fmt.Errorf("read the inventories of %s on %s: %w", o, o.Local.Name(), err)
	}
	wanted := map[string]bool{}
	for _, b := range rendered {
		wanted[b.Name] = true
	}
	position, err := r.flowPositions(o)
	if err != nil {
		return nil, err
	}
	var out []orphan
	for _, cm := range list {
		l := cm.GetLabels()
		if wanted[l[LabelBundle]] {
			continue
		}
		found := orphan{flowPosition: position[l[LabelBundle]], bundle: render.Bundle{
			Name: l[LabelBundle], Owner: o.Input.Owner, Cluster: l[LabelCluster], Namespace: o.Input.Owner.ControlPlaneNamespace,
			Delivery: render.Delivery{Direct: l[LabelDelivery] == deliveryDirect},
		}}
		if found.entries, err = r.inventory(o, found.bundle).Load(ctx); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", l[LabelBundle], err)
		}
		for _, e := range found.entries {
			if e.Ref.Kind == "ManagedResource" {
				found.bundle.Namespace = e.Ref.Namespace
			}
		}
		out = append(out, found)
	}
	// Delete in reverse order of the flow.
	sort.Slice(out, func(i, j int) bool {
		if out[i].flowPosition != out[j].flowPosition {
			return out[i].flowPosition > out[j].flowPosition
		}
		return out[i].bundle.Name > out[j].bundle.Name
	})
	return out, nil
}

// flowPositions returns the positions of bundles in the flow.
func (r *Reconciler) flowPositions(o *ownerSession) (map[string]int, error) {
	definition, err := render.LoadFlow(r.Render.Catalogue, "reconcile", o.Input)
	if err != nil {
		return nil, err
	}
	order, err := FlowGraph(definition).Order()
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

// removeOrphans deletes bundles of disabled components in reverse order, after a successful flow.
// The gate judges all deletions of a cluster together.
func (r *run) removeOrphans(ctx context.Context, rendered []render.Bundle) error {
	list, err := r.reconciler.orphans(ctx, r.owner, rendered)
	if err != nil {
		return err
	}
	contents, waits := make([][]apply.Entry, len(list)), make([]bool, len(list))
	leaving := map[string][]apply.Entry{}
	for i, o := range list {
		if contents[i], err = r.reconciler.orphanObjects(ctx, r.owner, o); err != nil {
			return fmt.Errorf("bundle %s: %w", o.bundle.Name, err)
		}
		if waits[i], err = r.isRemovalWaiting(ctx, o.bundle, contents[i]); err != nil {
			return fmt.Errorf("remove bundle %s: %w", o.bundle.Name, err)
		} else if waits[i] {
			continue
		}
		for _, e := range contents[i] {
			if !r.isInOtherBundle(o.bundle)(e.Ref) {
				leaving[o.bundle.Cluster] = append(leaving[o.bundle.Cluster], e)
			}
		}
	}
	held := map[string][]apply.HeldObject{}
	for _, cluster := range slices.Sorted(maps.Keys(leaving)) {
		held[cluster] = r.holdDeletions(cluster, leaving[cluster])
	}
	var problems []error
	for i, o := range list {
		if waits[i] {
			continue
		}
		if err := r.removeBundle(ctx, o.bundle, contents[i], held[o.bundle.Cluster]); err != nil {
			problems = append(problems, fmt.Errorf("remove bundle %s: %w", o.bundle.Name, err))
		}
	}
	return errors.Join(problems...)
}

// orphanObjects returns the objects of an orphan in its cluster.
func (r *Reconciler) orphanObjects(ctx context.Context, o *ownerSession, gone orphan) ([]apply.Entry, error) {
	known, _, err := r.recordedObjects(ctx, o, gone.bundle)
	return known, err
}

// removeBundle deletes the objects of a bundle and then its inventory. The objects of a
// ManagedResource are deleted together or not at all.
func (r *run) removeBundle(ctx context.Context, b render.Bundle, contents []apply.Entry, held []apply.HeldObject) error {
	cluster, err := r.owner.clusterForRole(b.Cluster)
	if err != nil {
		return err
	}
	tell := r.objectReporter(b)
	if !b.Delivery.Direct {
		if hasHeldEntry(held, contents) {
			return r.recordHeld(ctx, b, held)
		}
		deleted, err := r.removeManaged(ctx, b, false)
		if err != nil {
			return err
		}
		if deleted {
			managed := apply.ObjectResult{Ref: bundleManagedResourceRef(b), Action: apply.Deleted, Cluster: r.owner.Local.Name()}
			r.countResults(managed)
			tell(managed)
			tell = skipResult(managed.Ref, tell)
		}
		cluster = r.owner.Local
	} else if err := r.migrateToDirect(ctx, b); err != nil {
		return err
	}
	result, err := r.reconciler.Engine.Delete(ctx, cluster, newSet(r.owner, b, nil), r.reconciler.inventory(r.owner, b), apply.DeleteOptions{
		Approve:             func([]apply.Entry) []apply.HeldObject { return held },
		IsDeclaredElsewhere: r.isInOtherBundle(b),
		OnObject:            tell,
	})
	r.countResult(result)
	return err
}

// skipResult reports all objects except one, which was already reported.
func skipResult(said apply.Ref, tell func(apply.ObjectResult)) func(apply.ObjectResult) {
	return func(res apply.ObjectResult) {
		if res.Ref != said {
			tell(res)
		}
	}
}

// recordHeld records in the inventory of a ManagedResource why it is held, as the engine does for
// direct objects.
func (r *run) recordHeld(ctx context.Context, b render.Bundle, held []apply.HeldObject) error {
	rm, err := r.reconciler.resourceManager(r.owner, b)
	if err != nil {
		return err
	}
	inventory, err := managedInventory(ctx, rm, b)
	if err != nil {
		return err
	}
	entries, err := inventory.Load(ctx)
	if err != nil {
		return err
	}
	changed := false
	for i := range entries {
		for _, h := range held {
			if h.Ref == entries[i].Ref && h.Reason != entries[i].HeldReason {
				entries[i].HeldReason, changed = h.Reason, true
			}
		}
	}
	if !changed {
		return nil
	}
	return inventory.Save(ctx, entries)
}

func hasHeldEntry(held []apply.HeldObject, entries []apply.Entry) bool {
	for _, h := range held {
		for _, e := range entries {
			if e.Ref == h.Ref {
				return true
			}
		}
	}
	return false
}

// objectReporter reports the results of a bundle's objects.
func (r *run) objectReporter(b render.Bundle) func(apply.ObjectResult) {
	return func(res apply.ObjectResult) {
		if res.Action == apply.NotOwned {
			r.mu.Lock()
			r.report.Notes = append(r.report.Notes, fmt.Sprintf("cluster %s: %s: %s", r.clusterName(b.Cluster), res.Ref, res.Message))
			r.mu.Unlock()
		}
		if r.reconciler.Hooks.OnObject != nil {
			r.reconciler.Hooks.OnObject(r.owner.String(), b.Name, res)
		}
	}
}

// isRemovalWaiting reports whether the removal of a bundle waits for a later run, because no pod
// serves the Shoot's API server with its objects.
func (r *run) isRemovalWaiting(ctx context.Context, b render.Bundle, contents []apply.Entry) (bool, error) {
	served, err := r.serving.isReachable(ctx, r.owner, b)
	if err != nil || served || len(contents) == 0 || b.Delivery.Direct {
		return !served && len(contents) > 0, err
	}
	obj, err := r.owner.Local.GetLive(ctx, bundleManagedResourceRef(b))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, r.owner.Local.Explain(bundleManagedResourceRef(b), "read", err)
	}
	return !hasKeepObjects(obj), nil
}

func hasKeepObjects(managed *unstructured.Unstructured) bool {
	keeps, _, _ := unstructured.NestedBool(managed.Object, "spec", "keepObjects")
	return keeps
}

// removeManaged deletes a ManagedResource and waits until its objects no longer exist, or keeps
// them. It returns false if the ManagedResource did not exist.
func (r *run) removeManaged(ctx context.Context, b render.Bundle, keep bool) (deleted bool, err error) {
	ref := bundleManagedResourceRef(b)
	obj, err := r.owner.Local.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, r.owner.Local.Explain(ref, "read", err)
	}
	rm, err := r.reconciler.reconcilerForClass(r.owner, b, obj)
	if err != nil {
		return false, err
	}
	if keep || !r.isClusterServed(ctx, b) || b.Cluster == render.ClusterShoot && hasKeepObjects(obj) {
		// no object in the target cluster has to be deleted
		return true, rm.DeleteKeepingObjects(ctx, b.Namespace, b.Name)
	}
	rm.Options = apply.ApplyOptions{OnObject: r.objectReporter(b), IsDeclaredElsewhere: r.isInOtherBundle(b)}
	if obj.GetDeletionTimestamp() == nil {
		if err := rm.Delete(ctx, obj); err != nil {
			return false, err
		}
	}
	err = r.waitForManagedDeletion(ctx, rm, ref, b)
	return err == nil, err
}

// removalTimeout is the time limit for deleting the objects of a ManagedResource.
const removalTimeout = 2 * time.Minute

func (r *run) waitForManagedDeletion(ctx context.Context, rm *managedresource.Reconciler, ref apply.Ref, b render.Bundle) error {
	tick := r.reconciler.Clock.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := r.reconciler.Clock.Now().Add(min(removalTimeout, r.stepTimeout(removalTimeout)))
	for {
		outcome, gone, err := rm.ContinueDeletion(ctx, b.Namespace, b.Name)
		if outcome != nil {
			r.countResult(outcome.ApplyResult)
		}
		late := !r.reconciler.Clock.Now().Before(deadline)
		switch {
		case gone && err == nil:
			return nil
		case err != nil && late:
			return err
		case late:
			return fmt.Errorf("cluster %s: %s is still being deleted: see its finalizers and the ResourcesApplied condition", r.owner.Local.Name(), ref)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C():
		}
	}
}
