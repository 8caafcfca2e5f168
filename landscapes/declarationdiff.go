// SPDX-License-Identifier: Apache-2.0

package landscapes

import "k8s.io/apimachinery/pkg/runtime/schema"

// ObjectName identifies a declaration in a landscape.
type ObjectName struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// ObjectName returns the name of the object.
func (d *Declaration) ObjectName() ObjectName {
	return ObjectName{d.kind.GroupKind(), d.namespace, d.name}
}

// UnchangedDeclarations returns the declarations that are the same in two landscapes. It does not
// read content that has a digest.
func UnchangedDeclarations(old, new *Landscape) map[ObjectName]bool {
	was := make(map[ObjectName]*Declaration, len(old.Declarations))
	for i := range old.Declarations {
		was[old.Declarations[i].ObjectName()] = &old.Declarations[i]
	}
	alike := map[ObjectName]bool{}
	for i := range new.Declarations {
		d := &new.Declarations[i]
		if other := was[d.ObjectName()]; other != nil && other.HasSameContent(d) {
			alike[d.ObjectName()] = true
		}
	}
	return alike
}

// Filter returns a copy of the landscape with the declarations that keep selects.
func (l *Landscape) Filter(keep func(*Declaration) bool) *Landscape {
	rest := *l
	rest.Declarations = nil
	for i := range l.Declarations {
		if keep(&l.Declarations[i]) {
			rest.Declarations = append(rest.Declarations, l.Declarations[i])
		}
	}
	return &rest
}
