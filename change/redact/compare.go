// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// Compare lists the fields that differ between two versions of an object, ordered by path. A nil
// version is an object that does not exist. Status and fields that only a server writes are
// ignored. The result has no secret values (see redact.go), but has keys of Secrets. Compare is
// exact: a value that an API server would store differently is a difference, as is list order.
func Compare(old, new map[string]any) []change.Field { return Masking{}.Compare(old, new) }

// Compare is like the function Compare, with hashes for hidden values.
func (m Masking) Compare(old, new map[string]any) []change.Field { return compare(old, new, m, false) }

// CompareMeaning is Compare for a reviewer: it ignores equivalent notations, such as rules in
// another order or an explicit default.
func (m Masking) CompareMeaning(old, new map[string]any) []change.Field {
	return compare(old, new, m, true)
}

func compare(old, new map[string]any, m Masking, meaning bool) []change.Field {
	if jsonvalue.Equal(old, new) {
		return nil
	}
	var out []change.Field
	at := valueLocation{masking: m, ignoresNotation: meaning}.enterObject(old).enterObject(new)
	comparison{&out}.compareMaps(at, withoutServerFields(old), withoutServerFields(new))
	return out
}

// serverFields are metadata that the API server writes.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// lastAppliedAnnotation is kubectl's copy of the object; it only repeats its values.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// withoutServerFields returns a shallow copy without the ignored fields.
func withoutServerFields(obj map[string]any) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		if k != "status" {
			out[k] = v
		}
	}
	meta, ok := out["metadata"].(map[string]any)
	if ok {
		m := make(map[string]any, len(meta))
		for k, v := range meta {
			if !slices.Contains(serverFields, k) {
				m[k] = v
			}
		}
		if annotations, ok := m["annotations"].(map[string]any); ok {
			kept := make(map[string]any, len(annotations))
			for k, v := range annotations {
				if k != lastAppliedAnnotation {
					kept[k] = v
				}
			}
			m["annotations"] = kept
		}
		out["metadata"] = m
	}
	if isSecret(obj) {
		stringDataToData(out)
	}
	return out
}

// comparison collects differences.
type comparison struct{ out *[]change.Field }

func (c comparison) compareValues(at valueLocation, old, new any) {
	old, new = at.dropEmpty(old, new)
	if old == nil && new == nil {
		return
	}
	if at.isFullyHidden() {
		if !jsonvalue.Equal(old, new) {
			c.addField(at, old, new)
		}
		return
	}
	oldMap, isOld := old.(map[string]any)
	newMap, isNew := new.(map[string]any)
	if isOld && isNew || at.isComparedByKey() && (isOld && new == nil || isNew && old == nil) {
		c.compareMaps(at.enterObject(oldMap).enterObject(newMap), oldMap, newMap)
		return
	}
	oldList, isOld := old.([]any)
	newList, isNew := new.([]any)
	if isOld && isNew {
		c.compareLists(at, oldList, newList)
		return
	}
	if !at.isEqualScalar(old, new) {
		c.addField(at, old, new)
	}
}

// dropEmpty returns nil for a value that is equivalent to an absent one. An empty structure
// stays next to a set one, so that a reviewer sees which of its fields changed.
func (l valueLocation) dropEmpty(old, new any) (any, any) {
	o, n := l.isEmpty(old), l.isEmpty(new)
	switch {
	case o && n:
		return nil, nil
	case o && !(old != nil && l.isStructure()):
		return nil, new
	case n && !(new != nil && l.isStructure()):
		return old, nil
	}
	return old, new
}

func (c comparison) compareMaps(at valueLocation, old, new map[string]any) {
	old, new = at.completeDefaults(old), at.completeDefaults(new)
	keys := make([]string, 0, len(old)+len(new))
	for k := range old {
		keys = append(keys, k)
	}
	for k := range new {
		if _, both := old[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		inner := at.child(k, old, new)
		if at.ignoresNotation && (c.isDefault(at, inner, old, k, new[k]) || c.isDefault(at, inner, new, k, old[k])) {
			continue
		}
		c.compareValues(inner, old[k], new[k])
	}
}

// hasDifference reports whether two values differ by the same rules.
func (c comparison) hasDifference(at valueLocation, old, new any) bool {
	var found []change.Field
	comparison{&found}.compareValues(at, old, new)
	return len(found) > 0
}
