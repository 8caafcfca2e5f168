package schemas

import (
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/kept"
)

// Input is one object to validate.
type Input struct {
	// Object is the declaration; nil if it is being removed.
	Object *unstructured.Unstructured
	// Later replaces Object if the content is read only on demand.
	Later *Later
	// Old is the object before the change, nil for a new one. It enables the rules for updates and
	// deletions.
	Old *unstructured.Unstructured
	// OldLater replaces Old.
	OldLater *Later
	// Positions finds the position of a field; nil omits positions.
	Positions Positioner
}

// Later is an object whose content is read on demand.
type Later struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Digest is the digest of the content: objects with equal digests are equal.
	Digest kept.Key
	// Read returns the content, which is read-only. It may be called repeatedly and concurrently.
	Read func() *unstructured.Unstructured
}

func (l *Later) content(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object != nil || l == nil {
		return object
	}
	return l.Read()
}

// Declared reports whether the object is declared; otherwise it is being removed.
func (in *Input) Declared() bool { return in.Object != nil || in.Later != nil }

// Changed reports whether the object existed before.
func (in *Input) Changed() bool { return in.Old != nil || in.OldLater != nil }

// Content returns the object; nil if it is being removed.
func (in *Input) Content() *unstructured.Unstructured { return in.Later.content(in.Object) }

// OldContent returns the object before the change; nil for a new one.
func (in *Input) OldContent() *unstructured.Unstructured { return in.OldLater.content(in.Old) }

// Identity returns kind, namespace and name without reading the content.
func (in *Input) Identity() (kind schema.GroupVersionKind, namespace, name string) {
	object := in.Object
	switch {
	case object == nil && in.Later != nil:
		return in.Later.Kind, in.Later.Namespace, in.Later.Name
	case object == nil && in.OldLater != nil:
		return in.OldLater.Kind, in.OldLater.Namespace, in.OldLater.Name
	case object == nil:
		object = in.Old
	}
	return object.GroupVersionKind(), object.GetNamespace(), object.GetName()
}

// AsNew returns an unchanged object as a new one: if the new one is valid, so is the unchanged one.
func (in *Input) AsNew() (Input, bool) {
	if !in.Declared() || !in.Changed() || in.ContentDigest() != digestOf(in.OldLater, in.Old) {
		return Input{}, false
	}
	created := *in
	created.Old, created.OldLater = nil, nil
	return created, true
}

// Digest returns the digest of the content and of the old content.
func (in *Input) Digest() kept.Key {
	own := in.ContentDigest()
	if !in.Changed() {
		return own
	}
	old := digestOf(in.OldLater, in.Old)
	return sha256.Sum256(append(own[:], old[:]...))
}

// ContentDigest returns the digest of the content alone: an unchanged object has that of a new one.
func (in *Input) ContentDigest() kept.Key { return digestOf(in.Later, in.Object) }

func digestOf(later *Later, object *unstructured.Unstructured) kept.Key {
	switch {
	case object != nil:
		return sha256.Sum256(appendCanonical([]byte{'o'}, object.Object))
	case later != nil:
		return later.Digest
	}
	return kept.Key{}
}
