package resourcemanager

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// neighbours knows which objects other ManagedResources of the class declare. It reads their data
// Secrets, so that an object can move between ManagedResources in any order without being deleted.
//
// It is an index. Changes only mark entries as stale; they are read on demand, because deletions
// are rare.
type neighbours struct {
	m *Manager

	reading sync.Mutex // one reader at a time

	mu       sync.Mutex
	stale    map[types.NamespacedName]bool
	declared *index // by ManagedResources of our class
	held     *index // in the inventories of other classes
}

func newNeighbours(m *Manager) *neighbours {
	return &neighbours{m: m, stale: map[types.NamespacedName]bool{}, declared: newIndex(), held: newIndex()}
}

// index maps ManagedResources to objects and back.
type index struct {
	objects map[types.NamespacedName]map[objectName]bool
	holders map[objectName]map[types.NamespacedName]bool
}

func newIndex() *index {
	return &index{map[types.NamespacedName]map[objectName]bool{}, map[objectName]map[types.NamespacedName]bool{}}
}

// replace sets the objects of a ManagedResource.
func (i *index) replace(key types.NamespacedName, objects map[objectName]bool) {
	for name := range i.objects[key] {
		if delete(i.holders[name], key); len(i.holders[name]) == 0 {
			delete(i.holders, name)
		}
	}
	if len(objects) == 0 {
		delete(i.objects, key)
		return
	}
	i.objects[key] = objects
	for name := range objects {
		if i.holders[name] == nil {
			i.holders[name] = map[types.NamespacedName]bool{}
		}
		i.holders[name][key] = true
	}
}

// objectName names an object regardless of its API version. The namespace "default" counts as
// empty, because an empty namespace stands for it.
type objectName struct {
	kind            schema.GroupKind
	namespace, name string
}

func nameOf(kind schema.GroupKind, namespace, name string) objectName {
	if namespace == "default" {
		namespace = ""
	}
	return objectName{kind, namespace, name}
}

// changed marks a ManagedResource as stale after a change of it or of a Secret.
func (n *neighbours) changed(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stale[key] = true
}

// Declares implements managedresource.Neighbours. If the index cannot be read now, the object stays
// with its current ManagedResource.
func (n *neighbours) Declares(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, origin string, ref apply.Ref) (declared, known bool) {
	key, ok := n.m.keyOf(origin)
	if !ok {
		return n.declaredElsewhere(ctx, origin, ref)
	}
	if key == keyFor(mr) {
		return false, true
	}
	if err := n.read(ctx); err != nil {
		return true, true
	}
	name := nameOf(ref.GroupKind(), ref.Namespace, ref.Name)
	n.mu.Lock()
	declared = n.declared.objects[key][name]
	n.mu.Unlock()
	return declared || n.heldByOtherClass(ctx, key, name), true
}

// declaredElsewhere reads a ManagedResource in a namespace that we do not watch, if permitted.
// ManagedResources in another cluster are unknown.
func (n *neighbours) declaredElsewhere(ctx context.Context, origin string, ref apply.Ref) (declared, known bool) {
	key, ok := n.m.parsed(origin)
	if !ok {
		return false, false
	}
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	return inInventory(mr)[nameOf(ref.GroupKind(), ref.Namespace, ref.Name)], true
}

// heldByOtherClass reports whether a ManagedResource of another class has an object in its
// inventory. An unreadable ManagedResource counts as having it.
func (n *neighbours) heldByOtherClass(ctx context.Context, key types.NamespacedName, name objectName) bool {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return !n.m.reconciler.Responsible(mr) && inInventory(mr)[name]
}

// Want implements managedresource.Neighbours. It enqueues the ManagedResource that wants the
// object.
func (n *neighbours) Want(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref apply.Ref) (bool, error) {
	if err := n.read(ctx); err != nil {
		return false, err
	}
	name := nameOf(ref.GroupKind(), ref.Namespace, ref.Name)
	n.mu.Lock()
	others, held := maps.Clone(n.declared.holders[name]), maps.Clone(n.held.holders[name])
	n.mu.Unlock()
	for key := range others {
		if key != keyFor(mr) {
			n.m.enqueue(key, true)
			return true, nil
		}
	}
	// on a change of the class, the objects are recreated, as upstream does
	delete(held, keyFor(mr))
	for key := range held {
		wanted, err := n.wantedByOtherClass(ctx, key, name)
		if err != nil || wanted {
			return wanted, err
		}
	}
	return false, nil
}

// wantedByOtherClass reports whether a ManagedResource of another class, which tried to deploy an
// object, declares it. The result is not cached: this is rare, and there may be many.
func (n *neighbours) wantedByOtherClass(ctx context.Context, key types.NamespacedName, name objectName) (bool, error) {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) || err == nil && mr.DeletionTimestamp != nil {
		return false, nil
	}
	if err == nil {
		var wishes map[objectName]bool
		if wishes, err = n.declaredBy(ctx, mr); err == nil {
			return wishes[name], nil
		}
	}
	return false, fmt.Errorf("ManagedResource %s of another class may want it, and cannot be read: %w", key, err)
}

func keyFor(mr *resourcesv1alpha1.ManagedResource) types.NamespacedName {
	return types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
}

// read updates the index, or fails if that is impossible now.
func (n *neighbours) read(ctx context.Context) error {
	n.reading.Lock()
	defer n.reading.Unlock()
	n.mu.Lock()
	stale := n.stale
	n.stale = map[types.NamespacedName]bool{}
	n.mu.Unlock()
	for key := range stale {
		objects, held, err := n.wishes(ctx, key)
		n.mu.Lock()
		if err == nil {
			n.declared.replace(key, objects)
			n.held.replace(key, held)
			delete(stale, key)
		}
		n.mu.Unlock()
		if err == nil {
			continue
		}
		n.mu.Lock()
		maps.Copy(n.stale, stale) // this one and the remaining ones
		n.mu.Unlock()
		return fmt.Errorf("ManagedResource %s may want it, and cannot be read: %w", key, err)
	}
	return nil
}

// wishes returns the objects that a ManagedResource declares; for another class it returns the
// inventory (held) instead. A deleted or terminating ManagedResource declares none.
func (n *neighbours) wishes(ctx context.Context, key types.NamespacedName) (declared, held map[objectName]bool, err error) {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil || mr.DeletionTimestamp != nil {
		return nil, nil, err
	}
	if n.m.reconciler.Responsible(mr) {
		declared, err = n.declaredBy(ctx, mr)
		return declared, nil, err
	}
	return nil, inInventory(mr), nil
}

func inInventory(mr *resourcesv1alpha1.ManagedResource) map[objectName]bool {
	out := map[objectName]bool{}
	for _, res := range mr.Status.Resources {
		out[nameOf(res.GroupVersionKind().GroupKind(), res.Namespace, res.Name)] = true
	}
	return out
}

// declaredBy returns the objects in the Secrets of a ManagedResource. If a Secret is missing,
// invalid or forbidden, the inventory counts, too.
func (n *neighbours) declaredBy(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (map[objectName]bool, error) {
	objects, _, err := n.m.reconciler.Declared(ctx, mr)
	if err != nil && apply.IsPassing(err) {
		return nil, err
	}
	out := map[objectName]bool{}
	for _, o := range objects {
		if o.GetAnnotations()[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore {
			continue
		}
		namespace := o.GetNamespace()
		mapping, err := n.m.options.Target.Mapping(ctx, o.GroupVersionKind())
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		if err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			namespace = ""
		}
		out[nameOf(o.GroupVersionKind().GroupKind(), namespace, o.GetName())] = true
	}
	if err != nil {
		maps.Copy(out, inInventory(mr))
	}
	return out, nil
}
