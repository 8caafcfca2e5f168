// SPDX-License-Identifier: Apache-2.0

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

// declarationIndex knows which objects other ManagedResources of the class declare. It reads their
// data Secrets, so that an object can move between ManagedResources in any order without being
// deleted.
//
// It is an index. Changes only mark entries as stale; they are read on demand, because deletions
// are rare.
type declarationIndex struct {
	manager *Manager

	refreshing sync.Mutex // one reader at a time

	mu           sync.Mutex
	stale        map[types.NamespacedName]bool
	ownClass     *objectIndex // by ManagedResources of our class
	otherClasses *objectIndex // in the inventories of other classes
}

func newDeclarationIndex(m *Manager) *declarationIndex {
	return &declarationIndex{manager: m, stale: map[types.NamespacedName]bool{}, ownClass: newObjectIndex(), otherClasses: newObjectIndex()}
}

// objectIndex maps ManagedResources to objects and back.
type objectIndex struct {
	objects          map[types.NamespacedName]map[objectName]bool
	managedResources map[objectName]map[types.NamespacedName]bool
}

func newObjectIndex() *objectIndex {
	return &objectIndex{map[types.NamespacedName]map[objectName]bool{}, map[objectName]map[types.NamespacedName]bool{}}
}

// setObjects sets the objects of a ManagedResource.
func (i *objectIndex) setObjects(key types.NamespacedName, objects map[objectName]bool) {
	for name := range i.objects[key] {
		if delete(i.managedResources[name], key); len(i.managedResources[name]) == 0 {
			delete(i.managedResources, name)
		}
	}
	if len(objects) == 0 {
		delete(i.objects, key)
		return
	}
	i.objects[key] = objects
	for name := range objects {
		if i.managedResources[name] == nil {
			i.managedResources[name] = map[types.NamespacedName]bool{}
		}
		i.managedResources[name][key] = true
	}
}

// objectName names an object regardless of its API version. The namespace "default" counts as
// empty, because an empty namespace stands for it.
type objectName struct {
	kind            schema.GroupKind
	namespace, name string
}

func newObjectName(kind schema.GroupKind, namespace, name string) objectName {
	if namespace == "default" {
		namespace = ""
	}
	return objectName{kind, namespace, name}
}

// markStale marks a ManagedResource as stale after a change of it or of a Secret.
func (n *declarationIndex) markStale(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stale[key] = true
}

// IsDeclaredBy implements managedresource.DeclarationIndex. If the index cannot be read now, the
// object stays with its current ManagedResource.
func (n *declarationIndex) IsDeclaredBy(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, origin string, ref apply.Ref) (declared, known bool) {
	key, ok := n.manager.parseWatchedSetName(origin)
	if !ok {
		return n.isDeclaredInUnwatchedNamespace(ctx, origin, ref)
	}
	if key == managedResourceKey(mr) {
		return false, true
	}
	if err := n.refresh(ctx); err != nil {
		return true, true
	}
	name := newObjectName(ref.GroupKind(), ref.Namespace, ref.Name)
	n.mu.Lock()
	declared = n.ownClass.objects[key][name]
	n.mu.Unlock()
	return declared || n.isOwnedByOtherClass(ctx, key, name), true
}

// isDeclaredInUnwatchedNamespace reads a ManagedResource in a namespace that we do not watch, if
// permitted. ManagedResources in another cluster are unknown.
func (n *declarationIndex) isDeclaredInUnwatchedNamespace(ctx context.Context, origin string, ref apply.Ref) (declared, known bool) {
	key, ok := n.manager.parseSetName(origin)
	if !ok {
		return false, false
	}
	mr, err := n.manager.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	return inventoryObjects(mr)[newObjectName(ref.GroupKind(), ref.Namespace, ref.Name)], true
}

// isOwnedByOtherClass reports whether a ManagedResource of another class has an object in its
// inventory. An unreadable ManagedResource counts as having it.
func (n *declarationIndex) isOwnedByOtherClass(ctx context.Context, key types.NamespacedName, name objectName) bool {
	mr, err := n.manager.reconciler.Read(ctx, key.Namespace, key.Name)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return !n.manager.reconciler.IsResponsible(mr) && inventoryObjects(mr)[name]
}

// IsDeclaredElsewhere implements managedresource.DeclarationIndex. It enqueues the ManagedResource
// that wants the object.
func (n *declarationIndex) IsDeclaredElsewhere(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref apply.Ref) (bool, error) {
	if err := n.refresh(ctx); err != nil {
		return false, err
	}
	name := newObjectName(ref.GroupKind(), ref.Namespace, ref.Name)
	n.mu.Lock()
	others, held := maps.Clone(n.ownClass.managedResources[name]), maps.Clone(n.otherClasses.managedResources[name])
	n.mu.Unlock()
	for key := range others {
		if key != managedResourceKey(mr) {
			n.manager.enqueue(key, true)
			return true, nil
		}
	}
	// on a change of the class, the objects are recreated, as upstream does
	delete(held, managedResourceKey(mr))
	for key := range held {
		wanted, err := n.isDeclaredByOtherClass(ctx, key, name)
		if err != nil || wanted {
			return wanted, err
		}
	}
	return false, nil
}

// isDeclaredByOtherClass reports whether a ManagedResource of another class, which tried to deploy
// an object, declares it. The result is not cached: this is rare, and there may be many.
func (n *declarationIndex) isDeclaredByOtherClass(ctx context.Context, key types.NamespacedName, name objectName) (bool, error) {
	mr, err := n.manager.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) || err == nil && mr.DeletionTimestamp != nil {
		return false, nil
	}
	if err == nil {
		var wishes map[objectName]bool
		if wishes, err = n.declaredObjects(ctx, mr); err == nil {
			return wishes[name], nil
		}
	}
	return false, fmt.Errorf("ManagedResource %s of another class may declare it, but cannot be read: %w", key, err)
}

func managedResourceKey(mr *resourcesv1alpha1.ManagedResource) types.NamespacedName {
	return types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
}

// refresh updates the index, or fails if that is impossible now.
func (n *declarationIndex) refresh(ctx context.Context) error {
	n.refreshing.Lock()
	defer n.refreshing.Unlock()
	n.mu.Lock()
	stale := n.stale
	n.stale = map[types.NamespacedName]bool{}
	n.mu.Unlock()
	for key := range stale {
		objects, held, err := n.readObjects(ctx, key)
		n.mu.Lock()
		if err == nil {
			n.ownClass.setObjects(key, objects)
			n.otherClasses.setObjects(key, held)
			delete(stale, key)
		}
		n.mu.Unlock()
		if err == nil {
			continue
		}
		n.mu.Lock()
		maps.Copy(n.stale, stale) // this one and the remaining ones
		n.mu.Unlock()
		return fmt.Errorf("ManagedResource %s may declare it, but cannot be read: %w", key, err)
	}
	return nil
}

// readObjects returns the objects that a ManagedResource declares; for another class it returns the
// inventory (held) instead. A deleted or terminating ManagedResource declares none.
func (n *declarationIndex) readObjects(ctx context.Context, key types.NamespacedName) (declared, held map[objectName]bool, err error) {
	mr, err := n.manager.reconciler.Read(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil || mr.DeletionTimestamp != nil {
		return nil, nil, err
	}
	if n.manager.reconciler.IsResponsible(mr) {
		declared, err = n.declaredObjects(ctx, mr)
		return declared, nil, err
	}
	return nil, inventoryObjects(mr), nil
}

func inventoryObjects(mr *resourcesv1alpha1.ManagedResource) map[objectName]bool {
	out := map[objectName]bool{}
	for _, res := range mr.Status.Resources {
		out[newObjectName(res.GroupVersionKind().GroupKind(), res.Namespace, res.Name)] = true
	}
	return out
}

// declaredObjects returns the objects in the Secrets of a ManagedResource. If a Secret is missing,
// invalid or forbidden, the inventory counts, too.
func (n *declarationIndex) declaredObjects(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (map[objectName]bool, error) {
	objects, _, err := n.manager.reconciler.DeclaredObjects(ctx, mr)
	if err != nil && apply.IsTransient(err) {
		return nil, err
	}
	out := map[objectName]bool{}
	for _, o := range objects {
		if o.GetAnnotations()[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore {
			continue
		}
		namespace := o.GetNamespace()
		mapping, err := n.manager.options.Target.Mapping(ctx, o.GroupVersionKind())
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		if err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			namespace = ""
		}
		out[newObjectName(o.GroupVersionKind().GroupKind(), namespace, o.GetName())] = true
	}
	if err != nil {
		maps.Copy(out, inventoryObjects(mr))
	}
	return out, nil
}
