package seedpublication

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AnnotationUsedApprovals on a Seed has the ids of the approvals that have let a deletion pass on
// it, with commas between them. The gardenlet writes it: what is published for it, it may only
// read.
const AnnotationUsedApprovals = "landscape.pergola.dev/used-approvals"

// UsedApprovals reads them; a Seed that is nil has none.
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

// NoteUsedApprovals is the patch that makes a Seed have these ids, if it has others.
func NoteUsedApprovals(seed *unstructured.Unstructured, used []string) (patch map[string]any, differs bool) {
	used = slices.Sorted(slices.Values(used))
	if slices.Equal(used, slices.Sorted(slices.Values(UsedApprovals(seed)))) {
		return nil, false
	}
	var value any // nil takes it away
	if len(used) > 0 {
		value = strings.Join(used, ",")
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationUsedApprovals: value}}}, true
}
