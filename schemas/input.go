// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// Input is one object to validate.
type Input struct {
	// Object is the declaration; it is nil if it is being removed.
	Object *unstructured.Unstructured
	// Lazy replaces Object if the content is read only on demand.
	Lazy *LazyObject
	// Old is the object before the change; it is nil for a new one. It enables the rules for
	// updates and deletions.
	Old *unstructured.Unstructured
	// OldLazy replaces Old.
	OldLazy *LazyObject
	// Positions finds the position of a field; nil omits positions.
	Positions Positioner
}

// LazyObject is an object whose content is read on demand.
type LazyObject struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Digest is the digest of the content: objects with equal digests are equal.
	Digest resultcache.Key
	// Read returns the content, which is read-only. It may be called repeatedly and concurrently.
	Read func() *unstructured.Unstructured
}

func (l *LazyObject) readIfNil(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object != nil || l == nil {
		return object
	}
	return l.Read()
}

// IsDeclared reports whether the object is declared; otherwise it is being removed.
func (in *Input) IsDeclared() bool { return in.Object != nil || in.Lazy != nil }

// HasOld reports whether the object existed before.
func (in *Input) HasOld() bool { return in.Old != nil || in.OldLazy != nil }

// Content returns the object, or nil if it is being removed.
func (in *Input) Content() *unstructured.Unstructured { return in.Lazy.readIfNil(in.Object) }

// OldContent returns the object before the change, or nil for a new one.
func (in *Input) OldContent() *unstructured.Unstructured { return in.OldLazy.readIfNil(in.Old) }

// Identity returns kind, namespace and name without reading the content.
func (in *Input) Identity() (kind schema.GroupVersionKind, namespace, name string) {
	object := in.Object
	switch {
	case object == nil && in.Lazy != nil:
		return in.Lazy.Kind, in.Lazy.Namespace, in.Lazy.Name
	case object == nil && in.OldLazy != nil:
		return in.OldLazy.Kind, in.OldLazy.Namespace, in.OldLazy.Name
	case object == nil:
		object = in.Old
	}
	return object.GroupVersionKind(), object.GetNamespace(), object.GetName()
}

// AsNew returns an unchanged object as a new one: if the new one is valid, so is the unchanged one.
func (in *Input) AsNew() (Input, bool) {
	if !in.IsDeclared() || !in.HasOld() || in.ContentDigest() != objectDigest(in.OldLazy, in.Old) {
		return Input{}, false
	}
	created := *in
	created.Old, created.OldLazy = nil, nil
	return created, true
}

// Digest returns the digest of the content and of the old content.
func (in *Input) Digest() resultcache.Key {
	own := in.ContentDigest()
	if !in.HasOld() {
		return own
	}
	old := objectDigest(in.OldLazy, in.Old)
	return sha256.Sum256(append(own[:], old[:]...))
}

// ContentDigest returns the digest of the content alone: an unchanged object has that of a new one.
func (in *Input) ContentDigest() resultcache.Key { return objectDigest(in.Lazy, in.Object) }

func objectDigest(later *LazyObject, object *unstructured.Unstructured) resultcache.Key {
	switch {
	case object != nil:
		return sha256.Sum256(appendCanonical([]byte{'o'}, object.Object))
	case later != nil:
		return later.Digest
	}
	return resultcache.Key{}
}
