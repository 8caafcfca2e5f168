package landscapes

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// declarations are objects in the order in which they were found, each identity once.
type declarations struct {
	list  []Declaration
	index map[identity]int
}

func newDeclarations() *declarations { return &declarations{index: map[identity]int{}} }

func identityOf(object *unstructured.Unstructured) identity {
	return identity{kind: object.GroupVersionKind().GroupKind(), namespace: object.GetNamespace(), name: object.GetName()}
}

// add appends an object. If there is one of the same identity, that one is returned and the new one left out; objects
// without a name are not compared.
func (s *declarations) add(d Declaration) (first *Declaration, double bool) {
	id := identityOf(d.Object)
	if at, ok := s.index[id]; ok && id.name != "" {
		return &s.list[at], true
	}
	s.index[id] = len(s.list)
	s.list = append(s.list, d)
	return nil, false
}

// lay puts the objects of a layer over those that are there.
func (s *declarations) lay(over *declarations) {
	for i := range over.list {
		if first, double := s.add(over.list[i]); double {
			layOver(first, &over.list[i])
		}
	}
}

// layOver merges one declaration onto another one of the same identity.
func layOver(base, over *Declaration) {
	if base.Sealed != nil || over.Sealed != nil {
		base.Sealed = merge(asWritten(base), asWritten(over))
	}
	base.Object = &unstructured.Unstructured{Object: merge(base.Object.Object, over.Object.Object)}
	base.File, base.Line, base.Column, base.Layer = over.File, over.Line, over.Column, over.Layer
	base.origins = append(base.origins[:len(base.origins):len(base.origins)], over.origins...)
	if base.Secret != SecretEncrypted && over.Secret != "" {
		base.Secret = over.Secret
	}
}

// asWritten is an object without anything decrypted.
func asWritten(d *Declaration) map[string]any {
	if d.Sealed != nil {
		return d.Sealed
	}
	return d.Object.Object
}
