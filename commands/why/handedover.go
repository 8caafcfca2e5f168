// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// handedOverFields returns the declared fields that controllers own at, below or above a path.
func handedOverFields(m objectMatch, live *unstructured.Unstructured, list steps) []change.HandedOver {
	if m.declaration == nil || list == nil && m.path != "" {
		// components follow the effective value, and undeclared fields cannot be handed over
		return nil
	}
	asked := list.segmentNames()
	out := landscape.HandedOverFields(m.object, live)
	out = slices.DeleteFunc(out, func(h change.HandedOver) bool {
		n := min(len(h.PathSegments), len(asked))
		return !slices.Equal(h.PathSegments[:n], asked[:n])
	})
	for i := range out {
		out[i].Cluster = m.cluster
	}
	slices.SortFunc(out, func(a, b change.HandedOver) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// segmentNames returns the names in the path: keys, and names of items.
func (list steps) segmentNames() []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s.isItem() {
			out = append(out, s.text)
		} else {
			out = append(out, s.key)
		}
	}
	return out
}

// isExplainedByHandover reports whether handed-over fields explain the whole difference at a path.
// has is nil if the cluster lacks the field.
func (e *explainer) isExplainedByHandover(m objectMatch, list steps, has any, handed []change.HandedOver) bool {
	if len(handed) == 0 {
		return false
	}
	object := runtime.DeepCopyJSON(m.object.Object)
	for _, h := range handed {
		h.WriteLive(object)
	}
	want, declared := list.value(object)
	if fields, ok := want.(map[string]any); ok && len(fields) == 0 {
		declared = false // all of its content was removed
	}
	if !declared || has == nil {
		return !declared && has == nil
	}
	return e.isEqual(m.object, list, want, has)
}

// handedOverText returns the message.
func handedOverText(handed []change.HandedOver) string {
	var whys, managers []string
	for _, h := range handed {
		if !slices.Contains(whys, h.Reason) {
			whys = append(whys, h.Reason)
		}
		if h.Manager != "" && !slices.Contains(managers, h.Manager) {
			managers = append(managers, h.Manager)
		}
	}
	text := "handed over"
	if len(managers) > 0 {
		text += " to " + strings.Join(managers, ", ")
	}
	return text + ": " + strings.Join(whys, "; ") + " (docs/reference/field-ownership.md says when Git's value applies again)"
}
