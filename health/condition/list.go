// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Get returns the condition of a type, or nil.
func Get(list []Condition, kind v1beta1.ConditionType) *Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// Merge replaces conditions by type and appends new ones. The order and other conditions stay.
func Merge(old []Condition, updates ...Condition) []Condition {
	out := slices.Clone(old)
	for _, c := range updates {
		if i := slices.IndexFunc(out, func(o Condition) bool { return o.Type == c.Type }); i >= 0 {
			out[i] = c
		} else {
			out = append(out, c)
		}
	}
	return out
}

// Remove removes the conditions of the types.
func Remove(list []Condition, kinds ...v1beta1.ConditionType) []Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c Condition) bool { return slices.Contains(kinds, c.Type) })
}

// AreAllTrue reports whether every condition is True; an empty list is.
func AreAllTrue(list []Condition) bool {
	return !slices.ContainsFunc(list, func(c Condition) bool { return c.Status != v1beta1.ConditionTrue })
}

// Equal reports whether writing b over a would change nothing.
func Equal(a, b []Condition) bool {
	return len(a) == len(b) && (len(a) == 0 || equality.Semantic.DeepEqual(a, b))
}
