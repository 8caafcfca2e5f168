// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// An object may lose the record of our fields: someone restores it from a backup, or wipes its
// managedFields. Its content is then a copy of our fields under another manager, and every later
// change would be a conflict with that manager. Our origin annotation identifies such a copy: no
// one else writes it. We take back the fields that we apply, and leave the rest to that manager.

// copyManagers returns the managers that hold a copy of the fields that we applied to an object.
func (r *setRun) copyManagers(live *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	if live == nil || !r.isOwnOrigin(live.GetAnnotations()[r.engine.keys.Origin]) {
		return nil
	}
	if _, known := r.oldEntries[objectKeyOf(RefOf(live))]; !known {
		return nil
	}
	var out []metav1.ManagedFieldsEntry
	for _, m := range managersOf(live) {
		if m.Subresource != "" || r.isOwnManager(m) || r.isSiblingManager(m) || r.isTakeoverManager(live, m) {
			continue
		}
		if set := parseFields(m); set != nil && set.Has(r.originPath()) {
			out = append(out, m)
		}
	}
	return out
}

func (r *setRun) originPath() fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", r.engine.keys.Origin)
}

// isCopyManager reports whether copies contain a manager, by name.
func isCopyManager(copies []metav1.ManagedFieldsEntry, manager string) bool {
	return slices.ContainsFunc(copies, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == manager })
}

// dropCopyOwnership takes our fields from the managers that hold copies of them, after an apply.
func (r *setRun) dropCopyOwnership(ctx context.Context, answer *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	copies := r.copyManagers(answer)
	if len(copies) == 0 {
		return answer, nil
	}
	ours := ownedFields(answer, r.set.FieldManager)
	var managers []metav1.ManagedFieldsEntry
	for _, m := range managersOf(answer) {
		if !slices.ContainsFunc(copies, func(c metav1.ManagedFieldsEntry) bool {
			return c.Manager == m.Manager && c.Operation == m.Operation && c.Subresource == m.Subresource && c.APIVersion == m.APIVersion
		}) {
			managers = append(managers, m)
			continue
		}
		rest := parseFields(m).Difference(ours)
		if rest.Empty() {
			continue
		}
		raw, err := rest.ToJSON()
		if err != nil {
			return answer, valueFreeErrorf("the field managers of %s cannot be written", RefOf(answer))
		}
		m.FieldsV1 = metav1.NewFieldsV1(string(raw))
		managers = append(managers, m)
	}
	return r.patchManagers(ctx, answer, []ssa.JSONPatch{{Operation: "replace", Path: "/metadata/managedFields", Value: managers}})
}
