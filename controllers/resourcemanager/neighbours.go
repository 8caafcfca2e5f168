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

// neighbours answers what other ManagedResources of the class want, from their data Secrets: these
// say so before they are applied, so an object that moves from one ManagedResource to another is
// not deleted, whichever of the two is looked at first.
//
// It is an index. What changes is only marked, and read when somebody asks: most of the time nobody
// deletes anything.
type neighbours struct {
	m *Manager

	reading sync.Mutex // one reader at a time

	mu       sync.Mutex
	stale    map[types.NamespacedName]bool
	declared *index // what ManagedResources of our class declare
	held     *index // what is in the inventories of those of other classes
}

func newNeighbours(m *Manager) *neighbours {
	return &neighbours{m: m, stale: map[types.NamespacedName]bool{}, declared: newIndex(), held: newIndex()}
}

// index says which objects a ManagedResource has, and which ManagedResources have an object.
type index struct {
	objects map[types.NamespacedName]map[objectName]bool
	holders map[objectName]map[types.NamespacedName]bool
}

func newIndex() *index {
	return &index{map[types.NamespacedName]map[objectName]bool{}, map[objectName]map[types.NamespacedName]bool{}}
}

// replace puts the objects of a ManagedResource into the index.
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

// objectName names an object whatever the version of its API. The namespace "default" counts as
// none, which it stands for.
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

// changed marks a ManagedResource of which it or a Secret has changed.
func (n *neighbours) changed(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stale[key] = true
}

// Declares implements managedresource.Neighbours. When it cannot be told now, the object stays with
// the one that has it.
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

// declaredElsewhere asks for a ManagedResource in a namespace that we do not watch, as far as we
// may. Of one in another cluster nothing is known.
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

// heldByOtherClass tells whether a ManagedResource of another class has deployed an object and has
// not given it up: what that one wants is for its own resource manager to say, but its inventory
// can be read. One that cannot be read may hold it.
func (n *neighbours) heldByOtherClass(ctx context.Context, key types.NamespacedName, name objectName) bool {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return !n.m.reconciler.Responsible(mr) && inInventory(mr)[name]
}

// Want implements managedresource.Neighbours. The one that wants the object is looked at next.
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
	// it changes its class: then its objects are made anew, as upstream has it
	delete(held, keyFor(mr))
	for key := range held {
		wanted, err := n.wantedByOtherClass(ctx, key, name)
		if err != nil || wanted {
			return wanted, err
		}
	}
	return false, nil
}

// wantedByOtherClass tells whether a ManagedResource of another class that has tried to deploy an
// object declares it. That is read now and not kept: it hardly ever happens, and there may be many
// of them.
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

// read brings the index up to date. It fails when that cannot be done now.
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
		maps.Copy(n.stale, stale) // this one and those that were not looked at
		n.mu.Unlock()
		return fmt.Errorf("ManagedResource %s may want it, and cannot be read: %w", key, err)
	}
	return nil
}

// wishes are the objects that a ManagedResource declares; of one of another class what is in its
// inventory (held) instead. One that is gone or is being deleted wants none.
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

// declaredBy are the objects in the Secrets of a ManagedResource. Where one is missing, makes no
// sense or is forbidden to us, what is in the inventory counts, too.
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
