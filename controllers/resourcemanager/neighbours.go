package resourcemanager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// neighbours answers what other ManagedResources of the class want, from their data Secrets: these say so before they are
// applied, so an object that moves from one ManagedResource to another is not deleted, whichever of the two is looked at first.
//
// It is an index. What changes is only marked, and read when somebody asks: most of the time nobody deletes anything.
type neighbours struct {
	m *Manager

	reading sync.Mutex // one reader at a time

	mu       sync.Mutex
	stale    map[types.NamespacedName]bool
	declared map[types.NamespacedName]map[objectName]bool
	wanting  map[objectName]map[types.NamespacedName]bool
}

func newNeighbours(m *Manager) *neighbours {
	return &neighbours{m: m, stale: map[types.NamespacedName]bool{}, declared: map[types.NamespacedName]map[objectName]bool{},
		wanting: map[objectName]map[types.NamespacedName]bool{}}
}

// objectName names an object whatever the version of its API. The namespace "default" counts as none, which it stands for.
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

// Declares implements managedresource.Neighbours. When it cannot be told now, the object stays with the one that has it.
func (n *neighbours) Declares(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, origin string, ref apply.Ref) (declared, known bool) {
	key, ok := n.m.keyOf(origin)
	if !ok || key == keyFor(mr) {
		return false, ok
	}
	if err := n.read(ctx); err != nil {
		return true, true
	}
	name := nameOf(ref.GroupKind(), ref.Namespace, ref.Name)
	n.mu.Lock()
	declared = n.declared[key][name]
	n.mu.Unlock()
	return declared || n.heldByOtherClass(ctx, key, name), true
}

// heldByOtherClass tells whether a ManagedResource of another class has deployed an object and has not given it up: what that one
// wants is for its own resource manager to say, but its inventory can be read. One that cannot be read may hold it.
func (n *neighbours) heldByOtherClass(ctx context.Context, key types.NamespacedName, name objectName) bool {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return !n.m.reconciler.Responsible(mr) && slices.ContainsFunc(mr.Status.Resources, func(res resourcesv1alpha1.ObjectReference) bool {
		return nameOf(res.GroupVersionKind().GroupKind(), res.Namespace, res.Name) == name
	})
}

// Want implements managedresource.Neighbours. The one that wants the object is looked at next.
func (n *neighbours) Want(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref apply.Ref) (bool, error) {
	if err := n.read(ctx); err != nil {
		return false, err
	}
	n.mu.Lock()
	others := maps.Clone(n.wanting[nameOf(ref.GroupKind(), ref.Namespace, ref.Name)])
	n.mu.Unlock()
	for key := range others {
		if key != keyFor(mr) {
			n.m.enqueue(key, true)
			return true, nil
		}
	}
	return false, nil
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
		objects, err := n.wishes(ctx, key)
		n.mu.Lock()
		if err == nil {
			n.replace(key, objects)
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

// wishes are the objects that a ManagedResource declares. One that is gone, is being deleted or is of another class wants none. Where
// a Secret is missing, makes no sense or is forbidden to us, what is in the inventory counts as wanted, too.
func (n *neighbours) wishes(ctx context.Context, key types.NamespacedName) (map[objectName]bool, error) {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if mr.DeletionTimestamp != nil || !n.m.reconciler.Responsible(mr) {
		return nil, nil
	}
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
		mapping, err := n.m.Target.Mapping(ctx, o.GroupVersionKind())
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		if err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			namespace = ""
		}
		out[nameOf(o.GroupVersionKind().GroupKind(), namespace, o.GetName())] = true
	}
	if err != nil {
		for _, res := range mr.Status.Resources {
			out[nameOf(res.GroupVersionKind().GroupKind(), res.Namespace, res.Name)] = true
		}
	}
	return out, nil
}

// replace puts the objects of a ManagedResource into the index.
func (n *neighbours) replace(key types.NamespacedName, objects map[objectName]bool) {
	for name := range n.declared[key] {
		if delete(n.wanting[name], key); len(n.wanting[name]) == 0 {
			delete(n.wanting, name)
		}
	}
	if len(objects) == 0 {
		delete(n.declared, key)
		return
	}
	n.declared[key] = objects
	for name := range objects {
		if n.wanting[name] == nil {
			n.wanting[name] = map[types.NamespacedName]bool{}
		}
		n.wanting[name][key] = true
	}
}
