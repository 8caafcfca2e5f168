package resourcemanager

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// neighbours answers what other ManagedResources of the class want, from their data Secrets: these say so before they are
// applied, so an object that moves from one ManagedResource to another is not deleted, whichever of the two is looked at first.
type neighbours struct {
	m *Manager

	mu sync.Mutex
	// declared are the objects of ManagedResources with the state of their Secrets at which they were read.
	declared map[types.NamespacedName]declaration
}

type declaration struct {
	state   string
	objects map[objectName]bool
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

// Declares implements managedresource.Neighbours.
func (n *neighbours) Declares(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, origin string, ref apply.Ref) bool {
	key, ok := n.m.keyOf(origin)
	return ok && key != keyFor(mr) && n.wants(ctx, key, ref)
}

// Want implements managedresource.Neighbours. The one that wants the object is looked at next.
func (n *neighbours) Want(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref apply.Ref) bool {
	for _, key := range n.m.secrets.all() {
		if key != keyFor(mr) && n.wants(ctx, key, ref) {
			n.m.enqueue(key, true)
			return true
		}
	}
	return false
}

func keyFor(mr *resourcesv1alpha1.ManagedResource) types.NamespacedName {
	return types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
}

// wants tells whether a ManagedResource declares an object. One that cannot be read is taken to want nothing, as one that is
// being deleted does.
func (n *neighbours) wants(ctx context.Context, key types.NamespacedName, ref apply.Ref) bool {
	mr, err := n.m.reconciler.Read(ctx, key.Namespace, key.Name)
	if err != nil || mr.DeletionTimestamp != nil || !n.m.reconciler.Responsible(mr) {
		n.forget(key)
		return false
	}
	state := n.m.secrets.state(mr)
	n.mu.Lock()
	have, known := n.declared[key]
	n.mu.Unlock()
	if !known || have.state != state {
		objects, err := n.m.reconciler.Declared(ctx, mr)
		if err != nil && len(objects) == 0 {
			return false
		}
		have = declaration{state: state, objects: map[objectName]bool{}}
		for _, o := range objects {
			if o.GetAnnotations()[resourcesv1alpha1.Mode] != resourcesv1alpha1.ModeIgnore {
				have.objects[nameOf(o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())] = true
			}
		}
		n.mu.Lock()
		n.declared[key] = have
		n.mu.Unlock()
	}
	return have.objects[nameOf(ref.GroupKind(), ref.Namespace, ref.Name)]
}

func (n *neighbours) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.declared, key)
}

// all are the ManagedResources that have Secrets.
func (s *secrets) all() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(s.uses))
	for key := range s.uses {
		out = append(out, key)
	}
	return out
}

// state tells the versions of the Secrets of a ManagedResource apart.
func (s *secrets) state(mr *resourcesv1alpha1.ManagedResource) string {
	var out strings.Builder
	for _, ref := range mr.Spec.SecretRefs {
		key := types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}
		out.WriteString(ref.Name)
		out.WriteString("@")
		if seen, there, err := s.watch.GetStore().GetByKey(key.String()); err == nil && there {
			out.WriteString(versionOf(seen))
		}
		out.WriteString(" ")
	}
	return out.String()
}
