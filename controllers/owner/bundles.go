// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
)

// Labels of inventory ConfigMaps.
const (
	LabelInventory = "inventory.pergola.dev/owner"
	LabelBundle    = "inventory.pergola.dev/bundle"
	LabelCluster   = "inventory.pergola.dev/cluster"
	LabelComponent = "inventory.pergola.dev/component"
	LabelDelivery  = "inventory.pergola.dev/delivery"
)

const (
	deliveryDirect  = "direct"
	deliveryManaged = "managedResource"
)

// InventoryPrefix begins the names of inventory ConfigMaps.
const InventoryPrefix = "pergola-inventory."

// inventoryName returns the name of the ConfigMap of a bundle; owners of one cluster never share
// it.
func inventoryName(o render.Owner, bundle string) string {
	return InventoryPrefix + ownerLabel(o) + "." + bundle
}

// ownerLabel returns a valid label value: garden.local, seed.local, shoot.garden-local.local.
func ownerLabel(o render.Owner) string {
	parts := []string{o.Kind}
	if o.Namespace != "" {
		parts = append(parts, o.Namespace)
	}
	return strings.Join(append(parts, o.Name), ".")
}

func (r *Reconciler) inventory(o *ownerSession, b render.Bundle) apply.Inventory {
	delivery := deliveryManaged
	if b.Delivery.Direct {
		delivery = deliveryDirect
	}
	return apply.NewConfigMapInventory(o.Local, InventoryNamespace, inventoryName(o.Input.Owner, b.Name), map[string]string{
		LabelInventory: ownerLabel(o.Input.Owner), LabelBundle: b.Name, LabelCluster: b.Cluster,
		LabelComponent: strings.ReplaceAll(b.Component, "/", "."), LabelDelivery: delivery,
	})
}

// HasInventory reports whether an owner has an inventory on its cluster, so that objects of it may
// exist.
func HasInventory(ctx context.Context, o Owner) (bool, error) {
	selector := labels.SelectorFromSet(labels.Set{LabelInventory: ownerLabel(o.Input.Owner)})
	list, err := o.Local.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, InventoryNamespace, selector)
	if err != nil {
		return false, fmt.Errorf("read the inventories of %s on %s: %w", o, o.Local.Name(), err)
	}
	return len(list) > 0, nil
}

// nameOfSet is the origin annotation of a direct bundle, or of the pair of ManagedResource and data
// Secret.
func nameOfSet(o render.Owner, bundle string) string {
	return ownerLabel(o) + "/" + bundle
}

// newSet wraps objects for the engine; its errors show the origins.
func newSet(o *ownerSession, b render.Bundle, objects []*unstructured.Unstructured) apply.Set {
	s := apply.Set{
		Name: nameOfSet(o.Input.Owner, b.Name), Objects: objects, FieldManager: FieldManager, TakeBack: true,
		InjectLabels: b.Delivery.InjectLabels, KeepObjects: b.Delivery.KeepObjects,
		Sources: map[apply.Ref]string{},
	}
	for _, obj := range b.Objects {
		s.Sources[apply.RefOf(obj.Unstructured)] = obj.Origin.String()
	}
	return s
}

// newDirectSet returns the set of a direct bundle for an apply.
func newDirectSet(o *ownerSession, b render.Bundle, objects []*unstructured.Unstructured) apply.Set {
	s := newSet(o, b, objects)
	s.RebuildFrom = kindsOnCluster(o, b)
	return s
}

// objectsToApply returns the objects to apply for a bundle and their cluster: the objects of the
// bundle, or its ManagedResource and data Secret.
func (o *ownerSession) objectsToApply(ctx context.Context, b render.Bundle) ([]*unstructured.Unstructured, *apply.Cluster, error) {
	b, err := o.withSecretValues(ctx, b, true)
	if err != nil {
		return nil, nil, err
	}
	if b.Delivery.Direct {
		c, err := o.clusterForRole(b.Cluster)
		objects := make([]*unstructured.Unstructured, 0, len(b.Objects))
		for _, obj := range b.Objects {
			objects = append(objects, obj.Unstructured)
		}
		return objects, c, err
	}
	mr, secret, err := render.ManagedResource(b)
	if err != nil {
		return nil, nil, err
	}
	// A resource manager may run beside us, and has no deletion gate.
	annotations := mr.GetAnnotations()
	annotations[managedresource.AnnotationDeletions] = managedresource.DeletionsByOwner
	mr.SetAnnotations(annotations)
	if have := o.dataSecret(ctx, b); have != nil {
		if _, err := render.ReuseDataSecret(mr, secret, have); err != nil {
			return nil, nil, fmt.Errorf("bundle %s: %w", b.Name, err)
		}
	}
	if e := o.Local.CheckSize(secret); e != nil {
		e.Message = fmt.Sprintf("it holds the %d objects of the bundle, compressed: %s", len(b.Objects), e.Message)
		e.Hint = "divide the bundle, or deliver it with direct: true"
		return nil, nil, e
	}
	return []*unstructured.Unstructured{mr, secret}, o.Local, nil
}

// dataSecret returns the data Secret of the live ManagedResource of a bundle. It is nil if it is
// missing or unreadable, so that a new one is made.
func (o *ownerSession) dataSecret(ctx context.Context, b render.Bundle) *unstructured.Unstructured {
	live, err := o.Local.Get(ctx, bundleManagedResourceRef(b))
	if err != nil {
		return nil
	}
	refs, _, _ := unstructured.NestedSlice(live.Object, "spec", "secretRefs")
	if len(refs) != 1 {
		return nil
	}
	ref, _ := refs[0].(map[string]any)
	name, _ := ref["name"].(string)
	secret, err := o.Local.Get(ctx, apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: b.Namespace, Name: name})
	if err != nil {
		return nil
	}
	return secret
}

// applyBundle applies one bundle and returns its waiter. It records an error for the conditions.
func (r *run) applyBundle(ctx context.Context, b render.Bundle) (waiter, error) {
	w, err := r.applyDelivery(ctx, b)
	if !r.hasNewRendering {
		r.owner.updateState(func(s *State) {
			if err == nil || ctx.Err() == nil {
				s.recordApply(b.Name, err)
			}
			s.recordRendering(b, err)
		})
	}
	if err != nil {
		return w, fmt.Errorf("bundle %s: %w", b.Name, err)
	}
	w.reapply = func(ctx context.Context) (waiter, error) { return r.applyBundle(ctx, b) }
	return w, nil
}

func (r *run) applyDelivery(ctx context.Context, b render.Bundle) (waiter, error) {
	if b.Problem != "" {
		return waiter{}, errors.New(b.Problem)
	}
	if len(b.Unresolved) > 0 {
		return waiter{}, fmt.Errorf("not known yet: %s", strings.Join(b.Unresolved, ", "))
	}
	if b.Delivery.ServedBy != "" { // other bundles write their ManagedResource before that wait
		if waits, err := r.isWaitingForServer(ctx, b); err != nil || waits {
			return waiter{bundle: b, cluster: r.owner.Local}, err
		}
	}
	if r.hasNewRendering && !b.Delivery.Direct {
		return r.repairManaged(ctx, b)
	}
	objects, cluster, err := r.owner.objectsToApply(ctx, b)
	if err != nil {
		return waiter{}, err
	}
	if !b.Delivery.Direct {
		return r.applyManagedResource(ctx, b, cluster, objects)
	}
	if r.hasNewRendering {
		return waiter{}, r.repairDirect(ctx, b, cluster, objects)
	}
	if err := r.migrateToDirect(ctx, b); err != nil {
		return waiter{}, err
	}
	if waits, err := r.isWaitingForServer(ctx, b); err != nil || waits {
		return waiter{bundle: b, cluster: r.owner.Local}, err
	}
	result, err := r.reconciler.Engine.Apply(ctx, cluster, newDirectSet(r.owner, b, objects), r.reconciler.inventory(r.owner, b), r.applyOptions(b))
	r.countResult(result)
	if err != nil {
		return waiter{}, err
	}
	r.owner.recordTerminating(b.Name, cluster, result.Objects...)
	if err := apply.WaitForServedKinds(ctx, r.reconciler.Clock, cluster, objects); err != nil {
		return waiter{}, err
	}
	w := waiter{bundle: b, cluster: cluster, refs: objectRefs(objects)}
	w.changeCounts.Add(result.Objects...)
	w.requestTimestamps, err = r.requestOperations(ctx, cluster, r.requestedOperation(b.Name), objects, result)
	return w, err
}

// applyManagedResource writes the ManagedResource of a bundle and its data Secret, then acts as
// resource-manager.
func (r *run) applyManagedResource(ctx context.Context, b render.Bundle, cluster *apply.Cluster, objects []*unstructured.Unstructured) (waiter, error) {
	carried, err := r.releaseDeletedManagedResource(ctx, b)
	if err != nil {
		return waiter{}, err
	}
	inventory := r.reconciler.inventory(r.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return waiter{}, err
	}
	_, former := splitInventory(b, entries)
	s := newSet(r.owner, b, objects)
	s.InjectLabels, s.KeepObjects, s.InOrder = nil, false, true
	view := inventory
	if len(former) > 0 {
		view = apply.FilterInventory(inventory, func(e apply.Entry) bool { return isDeliveryObjectOf(b, e.Ref) })
	} else {
		s.RebuildFrom = apply.KindsOf(objects...)
	}
	options := r.applyOptions(b)
	options.IsDeclaredElsewhere = r.bundleMembership(b, true)
	result, err := r.reconciler.Engine.Apply(ctx, cluster, s, view, options)
	r.countResult(result)
	if err != nil {
		return waiter{}, err
	}
	if err := r.migrateToManaged(ctx, b, inventory, carried, former); err != nil {
		return waiter{}, err
	}
	w, err := r.reconcileManagedResource(ctx, b)
	w.changeCounts.Add(result.Objects...)
	return w, err
}

// releaseDeletedManagedResource releases a ManagedResource that someone deletes although its bundle
// is declared. The objects stay, and releaseDeletedManagedResource returns their entries for the
// new ManagedResource, so that an accidental deletion deletes nothing.
func (r *run) releaseDeletedManagedResource(ctx context.Context, b render.Bundle) ([]apply.Entry, error) {
	live, err := r.owner.Local.Get(ctx, bundleManagedResourceRef(b))
	if err != nil || live.GetDeletionTimestamp() == nil {
		// Missing or unreadable: the next apply reports it.
		return nil, nil
	}
	rm, err := r.reconciler.reconcilerForClass(r.owner, b, live)
	if err != nil {
		return nil, err
	}
	return rm.ReleaseObjects(ctx, b.Namespace, b.Name)
}

func bundleManagedResourceRef(b render.Bundle) apply.Ref {
	return managedResourceRef(b.Namespace, b.Name)
}

// reconcileManagedResource reconciles the ManagedResource that was just written.
func (r *run) reconcileManagedResource(ctx context.Context, b render.Bundle) (waiter, error) {
	rm, err := r.reconciler.resourceManager(r.owner, b)
	if err != nil {
		return waiter{}, err
	}
	rm.Options, rm.Sources = r.applyOptions(b), newSet(r.owner, b, nil).Sources
	rm.Options.Repair = false // the ManagedResource declares exactly the applied objects
	if waits, err := r.isWaitingForServer(ctx, b); err != nil || waits {
		return waiter{bundle: b, cluster: r.owner.Local}, err
	}
	outcome, err := rm.Reconcile(ctx, b.Namespace, b.Name)
	if outcome != nil {
		r.countResult(outcome.ApplyResult)
	}
	if err != nil {
		return waiter{}, err
	}
	w := waiter{bundle: b, cluster: rm.Target, managedReconciler: rm}
	if outcome.ApplyResult != nil {
		w.changeCounts.Add(outcome.ApplyResult.Objects...)
		r.owner.recordTerminating(b.Name, rm.Target, outcome.ApplyResult.Objects...)
	}
	w.refs, err = declaredRefs(ctx, rm, outcome)
	return w, err
}

// isWaitingForServer reports whether the objects of a bundle wait for a process that serves the
// Shoot's API server or its webhooks. If a process serves the API server, it returns once that
// server answers.
func (r *run) isWaitingForServer(ctx context.Context, b render.Bundle) (bool, error) {
	served, err := r.serving.canApply(ctx, r.owner, b)
	if err != nil {
		return false, err
	}
	r.owner.updateState(func(s *State) { s.setWaiting(b.Name, !served) })
	if !served || b.Cluster != render.ClusterShoot || !r.waitForAPIServer {
		return !served, nil
	}
	err = r.waitForTarget(ctx, "the API server of "+r.owner.String())
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		// the step has timed out and failed
		r.owner.updateState(func(s *State) { s.recordApply(b.Name, err) })
	}
	return false, err
}

// applyOptions returns the engine options of one bundle: the deletion gate and progress.
func (r *run) applyOptions(b render.Bundle) apply.ApplyOptions {
	return apply.ApplyOptions{
		ApprovePrune: func(entries []apply.Entry) []apply.HeldObject { return r.holdDeletions(b.Cluster, entries) },
		HoldRecreate: func(e apply.Entry) *change.Reason {
			if held := r.holdDeletions(b.Cluster, []apply.Entry{e}); len(held) > 0 {
				return &held[0].Reason
			}
			return nil
		},
		NoDelete: r.isRepair, Repair: r.hasNewRendering,
		IsDeclaredElsewhere: r.isInOtherBundle(b),
		OnObject:            r.objectReporter(b),
	}
}

// isInOtherBundle reports whether an object moved to another bundle of the same owner.
func (r *run) isInOtherBundle(b render.Bundle) func(apply.Ref) bool {
	return r.bundleMembership(b, false)
}

// bundleMembership is isInOtherBundle; with carrier it includes the bundle itself, for the set of
// its ManagedResource.
func (r *run) bundleMembership(b render.Bundle, carrier bool) func(apply.Ref) bool {
	wanted := map[apply.Ref]bool{}
	for _, other := range append(r.owner.Bundles(), b) {
		if other.Name == b.Name && !carrier || other.Cluster != b.Cluster {
			continue
		}
		for _, obj := range other.Objects {
			wanted[apply.RefOf(obj.Unstructured)] = true
		}
	}
	return func(ref apply.Ref) bool { return wanted[ref] }
}

func (r *run) countResults(results ...apply.ObjectResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.ChangeCounts.Add(results...)
	r.report.ChangedObjects = r.report.ChangeCounts.Total()
}

func (r *run) countResult(result *apply.Result) {
	if result == nil {
		return
	}
	r.countResults(result.Objects...)
	for _, o := range result.Objects {
		if r.isRepair && o.Action == apply.Skipped && o.Err == nil {
			r.unrepaired = append(r.unrepaired, o.Ref)
		}
	}
}

func objectRefs(objects []*unstructured.Unstructured) []apply.Ref {
	out := make([]apply.Ref, 0, len(objects))
	for _, o := range objects {
		out = append(out, apply.RefOf(o))
	}
	return out
}

func (r *Reconciler) setOfManaged(o *ownerSession, cluster string, ref apply.Ref) string {
	if o.Local.Name() != cluster {
		return ""
	}
	id := o.renderOwner()
	for _, b := range o.Bundles() {
		if !b.Delivery.Direct && bundleManagedResourceRef(b) == ref {
			return nameOfSet(id, b.Name)
		}
	}
	return ""
}
