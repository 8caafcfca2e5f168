// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// declarations are objects in the order of discovery, each identity once.
type declarations struct {
	list  []Declaration
	index map[identity]int
}

func newDeclarations() *declarations { return &declarations{index: map[identity]int{}} }

// reserve reserves capacity for up to n more objects.
func (s *declarations) reserve(n int) {
	if len(s.list) > 0 {
		return
	}
	s.list, s.index = make([]Declaration, 0, n), make(map[identity]int, n)
}

func identityOf(d *Declaration) identity {
	return identity{kind: d.kind.GroupKind(), namespace: d.namespace, name: d.name}
}

// add appends an object. If the identity exists, add returns the first object and drops the new
// one. Objects without a name are not compared.
func (s *declarations) add(d Declaration) (first *Declaration, double bool) {
	id := identityOf(&d)
	if at, ok := s.index[id]; ok && id.name != "" {
		return &s.list[at], true
	}
	s.index[id] = len(s.list)
	s.list = append(s.list, d)
	return nil, false
}

// mergeLayer puts the objects of a layer over the present ones. It calls vain for each field that
// the layer tries to remove and that does not exist.
func (s *declarations) mergeLayer(over *declarations, vain func(d *Declaration, field, meant string)) {
	if len(s.list) == 0 {
		*s = *over
		return
	}
	for i := range over.list {
		if first, double := s.add(over.list[i]); double {
			d := &over.list[i]
			misspeltRemovals("", first.content(useShared).object.Object, d.content(useShared).object.Object, func(field, meant string) { vain(d, field, meant) })
			mergeDeclaration(first, d)
		}
	}
}

// mergeDeclaration merges a declaration onto another one of the same identity.
func mergeDeclaration(base, over *Declaration) {
	below, above := base.content(useShared), over.content(useShared)
	merged := declaredContent{
		object:  &unstructured.Unstructured{Object: merge(below.object.Object, above.object.Object)},
		origins: slices.Concat(below.origins, above.origins),
	}
	if below.sealed != nil || above.sealed != nil {
		merged.sealed = merge(below.encryptedObject(), above.encryptedObject())
		merged.recipients = slices.Concat(below.recipients, above.recipients)
	}
	base.setContent(merged)
	base.File, base.Line, base.Column, base.Layer = over.File, over.Line, over.Column, over.Layer
	if base.Secret != SecretEncrypted && over.Secret != "" {
		base.Secret = over.Secret
	}
}

// encryptedObject returns an object without decrypted values.
func (w declaredContent) encryptedObject() map[string]any {
	if w.sealed != nil {
		return w.sealed
	}
	return w.object.Object
}
