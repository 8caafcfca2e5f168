// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// changedFields returns the fields in which a live object and the server's dry-run answer differ.
func changedFields(live, answer *unstructured.Unstructured) []change.Field {
	return redact.Compare(live.Object, answer.Object)
}

// changedFieldsAt compares the fields that a server's message names. Before a recreation there is
// no answer to compare with, and defaults would appear as differences.
func changedFieldsAt(live, want *unstructured.Unstructured, paths []string) []change.Field {
	return redact.Compare(onlyFields(live, paths).Object, onlyFields(want, paths).Object)
}

// onlyFields returns a copy of an object with nothing but the fields at some paths.
func onlyFields(o *unstructured.Unstructured, paths []string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(o.GroupVersionKind())
	for _, path := range paths {
		parts := strings.Split(path, ".")
		if v, found, _ := unstructured.NestedFieldCopy(o.Object, parts...); found {
			_ = unstructured.SetNestedField(out.Object, v, parts...)
		}
	}
	return out
}
