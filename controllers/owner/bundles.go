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

func (r *Reconciler) inventory(o *subject, b render.Bundle) apply.Inventory {
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

// setName is the origin annotation of a direct bundle, or of the pair of ManagedResource and data
// Secret.
func setName(o render.Owner, bundle string) string {
	return ownerLabel(o) + "/" + bundle
}

// set wraps objects for the engine; its errors show the origins.
func set(o *subject, b render.Bundle, objects []*unstructured.Unstructured) apply.Set {
	s := apply.Set{
		Name: setName(o.Input.Owner, b.Name), Objects: objects, FieldManager: FieldManager, TakeBack: true,
		InjectLabels: b.Delivery.InjectLabels, KeepObjects: b.Delivery.KeepObjects,
		Sources: map[apply.Ref]string{},
	}
	for _, obj := range b.Objects {
		s.Sources[apply.RefOf(obj.Unstructured)] = obj.Origin.String()
	}
	return s
}

// directSet returns the set of a direct bundle for an apply.
func directSet(o *subject, b render.Bundle, objects []*unstructured.Unstructured) apply.Set {
	s := set(o, b, objects)
	s.RebuildFrom = neighbours(o, b)
	return s
}

// delivered returns the objects to apply for a bundle and their cluster: the objects of the bundle,
// or its ManagedResource and data Secret.
func (o *subject) delivered(ctx context.Context, b render.Bundle) ([]*unstructured.Unstructured, *apply.Cluster, error) {
	b, err := o.filled(ctx, b, true)
	if err != nil {
		return nil, nil, err
	}
	if b.Delivery.Direct {
		c, err := o.cluster(b.Cluster)
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
		if _, err := render.KeepData(mr, secret, have); err != nil {
			return nil, nil, fmt.Errorf("bundle %s: %w", b.Name, err)
		}
	}
	if e := o.Local.CheckSize(secret); e != nil {
		e.Message = fmt.Sprintf("it carries the %d objects of the bundle, compressed: %s", len(b.Objects), e.Message)
		e.Hint = "divide the bundle, or deliver it with direct: true"
		return nil, nil, e
	}
	return []*unstructured.Unstructured{mr, secret}, o.Local, nil
}

// dataSecret returns the data Secret of the live ManagedResource of a bundle. It is nil if it is
// missing or unreadable, so that a new one is made.
func (o *subject) dataSecret(ctx context.Context, b render.Bundle) *unstructured.Unstructured {
	live, err := o.Local.Get(ctx, managedRef(b))
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
	w, err := r.sendBundle(ctx, b)
	if !r.pending {
		r.owner.note(func(s *State) {
			if err == nil || ctx.Err() == nil {
				s.sent(b.Name, err)
			}
			s.appliedAs(b, err)
		})
	}
	if err != nil {
		return w, fmt.Errorf("bundle %s: %w", b.Name, err)
	}
	w.again = func(ctx context.Context) (waiter, error) { return r.applyBundle(ctx, b) }
	return w, nil
}

func (r *run) sendBundle(ctx context.Context, b render.Bundle) (waiter, error) {
	if b.Problem != "" {
		return waiter{}, errors.New(b.Problem)
	}
	if len(b.Unresolved) > 0 {
		return waiter{}, fmt.Errorf("not known yet: %s", strings.Join(b.Unresolved, ", "))
	}
	if b.Delivery.ServedBy != "" { // other bundles write their ManagedResource before that wait
		if waits, err := r.waitsForServer(ctx, b); err != nil || waits {
			return waiter{bundle: b, cluster: r.owner.Local}, err
		}
	}
	if r.pending && !b.Delivery.Direct {
		return r.repairManaged(ctx, b)
	}
	objects, cluster, err := r.owner.delivered(ctx, b)
	if err != nil {
		return waiter{}, err
	}
	if !b.Delivery.Direct {
		return r.sendManaged(ctx, b, cluster, objects)
	}
	if r.pending {
		return waiter{}, r.repairDirect(ctx, b, cluster, objects)
	}
	if err := r.endManaged(ctx, b); err != nil {
		return waiter{}, err
	}
	if waits, err := r.waitsForServer(ctx, b); err != nil || waits {
		return waiter{bundle: b, cluster: r.owner.Local}, err
	}
	result, err := r.reconciler.Engine.Apply(ctx, cluster, directSet(r.owner, b, objects), r.reconciler.inventory(r.owner, b), r.options(b))
	r.countAll(result)
	if err != nil {
		return waiter{}, err
	}
	r.owner.noteLeaving(b.Name, cluster, result.Objects...)
	if err := apply.AwaitServed(ctx, r.reconciler.Clock, cluster, objects); err != nil {
		return waiter{}, err
	}
	w := waiter{bundle: b, cluster: cluster, refs: refs(objects)}
	w.written.Add(result.Objects...)
	w.stamped, err = r.request(ctx, cluster, r.operation(b.Name), objects, result)
	return w, err
}

// sendManaged writes the ManagedResource of a bundle and its data Secret, then acts as
// resource-manager.
func (r *run) sendManaged(ctx context.Context, b render.Bundle, cluster *apply.Cluster, objects []*unstructured.Unstructured) (waiter, error) {
	carried, err := r.takeBack(ctx, b)
	if err != nil {
		return waiter{}, err
	}
	inventory := r.reconciler.inventory(r.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return waiter{}, err
	}
	_, former := split(b, entries)
	s := set(r.owner, b, objects)
	s.InjectLabels, s.KeepObjects, s.InOrder = nil, false, true
	view := inventory
	if len(former) > 0 {
		view = apply.Part(inventory, func(e apply.Entry) bool { return carrierOf(b, e.Ref) })
	} else {
		s.RebuildFrom = apply.KindsOf(objects...)
	}
	options := r.options(b)
	options.DesiredElsewhere = r.wantedElsewhere(b, true)
	result, err := r.reconciler.Engine.Apply(ctx, cluster, s, view, options)
	r.countAll(result)
	if err != nil {
		return waiter{}, err
	}
	if err := r.endDirect(ctx, b, inventory, carried, former); err != nil {
		return waiter{}, err
	}
	w, err := r.applyManaged(ctx, b)
	w.written.Add(result.Objects...)
	return w, err
}

// takeBack releases a ManagedResource that somebody deletes although its bundle is declared. The
// objects stay, and takeBack returns their entries for the new ManagedResource, so that an
// accidental deletion deletes nothing.
func (r *run) takeBack(ctx context.Context, b render.Bundle) ([]apply.Entry, error) {
	live, err := r.owner.Local.Get(ctx, managedRef(b))
	if err != nil || live.GetDeletionTimestamp() == nil {
		// Missing or unreadable: the next apply reports it.
		return nil, nil
	}
	rm, err := r.reconciler.managerOf(r.owner, b, live)
	if err != nil {
		return nil, err
	}
	return rm.Release(ctx, b.Namespace, b.Name)
}

func managedRef(b render.Bundle) apply.Ref { return managedResourceRef(b.Namespace, b.Name) }

// applyManaged reconciles the ManagedResource that was just written.
func (r *run) applyManaged(ctx context.Context, b render.Bundle) (waiter, error) {
	rm, err := r.reconciler.resourceManager(r.owner, b)
	if err != nil {
		return waiter{}, err
	}
	rm.Options, rm.Sources = r.options(b), set(r.owner, b, nil).Sources
	rm.Options.Repair = false // the ManagedResource declares exactly the applied objects
	if waits, err := r.waitsForServer(ctx, b); err != nil || waits {
		return waiter{bundle: b, cluster: r.owner.Local}, err
	}
	outcome, err := rm.Reconcile(ctx, b.Namespace, b.Name)
	if outcome != nil {
		r.countAll(outcome.Applied)
	}
	if err != nil {
		return waiter{}, err
	}
	w := waiter{bundle: b, cluster: rm.Target, managed: rm}
	if outcome.Applied != nil {
		w.written.Add(outcome.Applied.Objects...)
		r.owner.noteLeaving(b.Name, rm.Target, outcome.Applied.Objects...)
	}
	w.refs, err = refsOf(ctx, rm, outcome)
	return w, err
}

// waitsForServer reports whether the objects of a bundle wait for a process that serves the Shoot's
// API server or its webhooks. If a process serves the API server, it returns once that server
// answers.
func (r *run) waitsForServer(ctx context.Context, b render.Bundle) (bool, error) {
	served, err := r.serving.admits(ctx, r.owner, b)
	if err != nil {
		return false, err
	}
	r.owner.note(func(s *State) { s.waits(b.Name, !served) })
	if !served || b.Cluster != render.ClusterShoot || !r.patient {
		return !served, nil
	}
	err = r.awaitTarget(ctx, "the API server of "+r.owner.String())
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		// the step has timed out and failed
		r.owner.note(func(s *State) { s.sent(b.Name, err) })
	}
	return false, err
}

// options returns the engine options of one bundle: the deletion gate and progress.
func (r *run) options(b render.Bundle) apply.ApplyOptions {
	return apply.ApplyOptions{
		ApprovePrune: func(entries []apply.Entry) []apply.Held { return r.judge(b.Cluster, entries) },
		HoldRecreate: func(e apply.Entry) *change.Reason {
			if held := r.judge(b.Cluster, []apply.Entry{e}); len(held) > 0 {
				return &held[0].Reason
			}
			return nil
		},
		NoDelete: r.repairing, Repair: r.pending,
		DesiredElsewhere: r.desiredElsewhere(b),
		OnObject:         r.progress(b),
	}
}

// desiredElsewhere reports whether an object moved to another bundle of the same owner.
func (r *run) desiredElsewhere(b render.Bundle) func(apply.Ref) bool {
	return r.wantedElsewhere(b, false)
}

// wantedElsewhere is desiredElsewhere; with carrier it includes the bundle itself, for the set of
// its ManagedResource.
func (r *run) wantedElsewhere(b render.Bundle, carrier bool) func(apply.Ref) bool {
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

func (r *run) count(results ...apply.ObjectResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Written.Add(results...)
	r.report.Changed = r.report.Written.Total()
}

func (r *run) countAll(result *apply.Result) {
	if result == nil {
		return
	}
	r.count(result.Objects...)
	for _, o := range result.Objects {
		if r.repairing && o.Action == apply.Skipped && o.Err == nil {
			r.left = append(r.left, o.Ref)
		}
	}
}

func refs(objects []*unstructured.Unstructured) []apply.Ref {
	out := make([]apply.Ref, 0, len(objects))
	for _, o := range objects {
		out = append(out, apply.RefOf(o))
	}
	return out
}

func (r *Reconciler) setOfManaged(o *subject, cluster string, ref apply.Ref) string {
	if o.Local.Name() != cluster {
		return ""
	}
	id := o.identity()
	for _, b := range o.Bundles() {
		if !b.Delivery.Direct && managedRef(b) == ref {
			return setName(id, b.Name)
		}
	}
	return ""
}
