package why

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// handedOver are the declared fields that are left to controllers: the one at a place, or those in
// it, or one that it is in.
func handedOver(m match, live *unstructured.Unstructured, list steps) []change.HandedOver {
	if m.declaration == nil || list == nil && m.path != "" {
		// components follow what is in force, and what Git says nothing about is nobody's to hand
		// over
		return nil
	}
	asked := list.names()
	out := landscape.HandedOver(m.object, live)
	out = slices.DeleteFunc(out, func(h change.HandedOver) bool {
		n := min(len(h.Steps), len(asked))
		return !slices.Equal(h.Steps[:n], asked[:n])
	})
	for i := range out {
		out[i].Cluster = m.cluster
	}
	slices.SortFunc(out, func(a, b change.HandedOver) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// names are the parts of the path: names of fields, and for an item of a list the name of the item.
func (list steps) names() []string {
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

// explained tells whether what is handed over is all by which the cluster differs from Git at a
// place. has is nil where the cluster does not have the field.
func (e *explainer) explained(m match, list steps, has any, handed []change.HandedOver) bool {
	if len(handed) == 0 {
		return false
	}
	object := runtime.DeepCopyJSON(m.object.Object)
	for _, h := range handed {
		h.Set(object)
	}
	want, declared := list.value(object)
	if fields, ok := want.(map[string]any); ok && len(fields) == 0 {
		declared = false // all that was in it is gone
	}
	if !declared || has == nil {
		return !declared && has == nil
	}
	return e.equal(m.object, list, want, has)
}

// whyHandedOver is the message for people.
func whyHandedOver(handed []change.HandedOver) string {
	var whys, managers []string
	for _, h := range handed {
		if !slices.Contains(whys, h.Why) {
			whys = append(whys, h.Why)
		}
		if h.By != "" && !slices.Contains(managers, h.By) {
			managers = append(managers, h.By)
		}
	}
	text := "handed over"
	if len(managers) > 0 {
		text += " to " + strings.Join(managers, ", ")
	}
	return text + ": " + strings.Join(whys, "; ") + " (docs/ownership.md says when Git has its way again)"
}
