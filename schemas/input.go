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
	// Later stands for Object where the content is to be read only if somebody needs it.
	Later *Later
	// Old is the object before the change, nil for a new one. It turns on the rules of updates and
	// deletions.
	Old *unstructured.Unstructured
	// OldLater stands for Old.
	OldLater *Later
	// Positions finds the place of a field; nil leaves places out.
	Positions Positioner
}

// Later is an object whose content is read when somebody needs it.
type Later struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Digest is that of the content: objects with the same digest are the same.
	Digest kept.Key
	// Read gives the content, which nobody may change. It may be called several times, and at the
	// same time.
	Read func() *unstructured.Unstructured
}

func (l *Later) content(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object != nil || l == nil {
		return object
	}
	return l.Read()
}

// Declared tells whether there is an object: otherwise it is being removed.
func (in *Input) Declared() bool { return in.Object != nil || in.Later != nil }

// Changed tells whether there was an object before.
func (in *Input) Changed() bool { return in.Old != nil || in.OldLater != nil }

// Content is the object; nil if it is being removed.
func (in *Input) Content() *unstructured.Unstructured { return in.Later.content(in.Object) }

// OldContent is the object before the change; nil for a new one.
func (in *Input) OldContent() *unstructured.Unstructured { return in.OldLater.content(in.Old) }

// Identity says which object it is, without reading its content.
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

// AsNew is the object without what was there before, if that is the same: what is known to be right
// in it as a new object is so in one that has not changed.
func (in *Input) AsNew() (Input, bool) {
	if !in.Declared() || !in.Changed() || in.ContentDigest() != digestOf(in.OldLater, in.Old) {
		return Input{}, false
	}
	created := *in
	created.Old, created.OldLater = nil, nil
	return created, true
}

// Digest is that of the content and of the content before.
func (in *Input) Digest() kept.Key {
	own := in.ContentDigest()
	if !in.Changed() {
		return own
	}
	old := digestOf(in.OldLater, in.Old)
	return sha256.Sum256(append(own[:], old[:]...))
}

// ContentDigest is that of the content alone: objects that were there before and did not change
// have that of new ones.
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
