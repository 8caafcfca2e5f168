// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AnnotationUsedApprovals on a Seed lists the ids of the approvals that were used on it, separated
// by commas. The gardenlet writes it, because it may only read its publication.
const AnnotationUsedApprovals = "landscape.pergola.dev/used-approvals"

// UsedApprovals returns the ids; a nil Seed has none.
func UsedApprovals(seed *unstructured.Unstructured) []string {
	if seed == nil {
		return nil
	}
	var out []string
	for id := range strings.SplitSeq(seed.GetAnnotations()[AnnotationUsedApprovals], ",") {
		if id = strings.TrimSpace(id); id != "" {
			out = append(out, id)
		}
	}
	return out
}

// UsedApprovalsPatch returns the patch that gives a Seed these ids; differs is false if it has them
// already.
func UsedApprovalsPatch(seed *unstructured.Unstructured, used []string) (patch map[string]any, differs bool) {
	used = slices.Sorted(slices.Values(used))
	if slices.Equal(used, slices.Sorted(slices.Values(UsedApprovals(seed)))) {
		return nil, false
	}
	var value any // nil removes the annotation
	if len(used) > 0 {
		value = strings.Join(used, ",")
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationUsedApprovals: value}}}, true
}
