// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// The API server records the owner of a field before it drops the field, for example behind a
// disabled feature gate, and reports nothing. So the answer to an apply is compared with the
// request: a field that we own and that the answer lacks was dropped.

// droppedField is a field that we own and the live object lacks.
type droppedField struct {
	path fieldpath.Path
	sent any
}

func (d droppedField) String() string { return pathText(d.path) }

// droppedFields returns the sent fields that were dropped, each as its outermost missing field.
func droppedFields(sent, live *unstructured.Unstructured, manager string) []droppedField {
	s := droppedFieldSearch{sent: sent, live: live}
	ownedFields(live, manager).Leaves().Iterate(func(p fieldpath.Path) {
		if wanted, has := lookupSent(sent.Object, p); has {
			s.compare(p.Copy(), wanted)
		}
	})
	slices.SortFunc(s.found, func(a, b droppedField) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(s.found, func(a, b droppedField) bool { return a.String() == b.String() })
}

type droppedFieldSearch struct {
	sent, live *unstructured.Unstructured
	typed      map[string]any // the sent object as its Go type encodes it
	found      []droppedField
}

// compare records the fields that the live object lacks at a path.
func (s *droppedFieldSearch) compare(p fieldpath.Path, wanted any) {
	for n := 1; n <= len(p); n++ {
		have, there := lookup(s.live.Object, p[:n])
		if there && n < len(p) {
			continue
		}
		switch {
		case there:
			s.compareInside(p, wanted, have)
		case s.isSet(p, wanted):
			outer, _ := lookupSent(s.sent.Object, p[:n])
			s.found = append(s.found, droppedField{p[:n], outer})
		}
		return
	}
}

// compareInside compares a value that is owned as a whole: its fields, and its items if no item was
// added or removed.
func (s *droppedFieldSearch) compareInside(p fieldpath.Path, wanted, have any) {
	switch w := wanted.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for name, inner := range w {
			at := append(p.Copy(), fieldpath.PathElement{FieldName: &name})
			if now, there := h[name]; there {
				s.compareInside(at, inner, now)
			} else if s.isSet(at, inner) {
				s.found = append(s.found, droppedField{at, inner})
			}
		}
	case []any:
		h, _ := have.([]any)
		for i := range w {
			if len(w) == len(h) {
				s.compareInside(append(p.Copy(), fieldpath.PathElement{Index: &i}), w[i], h[i])
			}
		}
	}
}

// isSet reports whether a sent value means anything: a zero value means unset, unless the Go
// type of the field distinguishes the two.
func (s *droppedFieldSearch) isSet(p fieldpath.Path, v any) bool {
	if !isZero(v) {
		return true
	}
	if m, isMap := v.(map[string]any); isMap && len(m) > 0 || !scheme.Scheme.Recognizes(s.sent.GroupVersionKind()) {
		return false
	}
	if s.typed == nil {
		s.typed = map[string]any{}
		if object, err := scheme.Scheme.New(s.sent.GroupVersionKind()); err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(s.sent.Object, object) == nil {
			if typed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object); err == nil {
				s.typed = typed
			}
		}
	}
	written, has := lookupSent(s.typed, p)
	return has && written != nil
}

// isZero reports whether a value sets nothing.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !isZero(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

// lookupSent is lookup in an object as it was sent: keys of list items may lack server defaults.
func lookupSent(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		if e.Key == nil {
			var ok bool
			if v, ok = childAt(v, e); !ok {
				return nil, false
			}
			continue
		}
		list, _ := v.([]any)
		i := slices.IndexFunc(list, func(item any) bool {
			m, isMap := item.(map[string]any)
			return isMap && !slices.ContainsFunc(*e.Key, func(k value.Field) bool {
				has, there := m[k.Name]
				return there && !value.Equals(value.NewValueInterface(has), k.Value)
			})
		})
		if i < 0 {
			return nil, false
		}
		v = list[i]
	}
	return v, true
}

// droppedFieldsOf returns the fields of an unchanged object that were dropped when it was applied.
func (r *setRun) droppedFieldsOf(w applyRequest, live *unstructured.Unstructured) []droppedField {
	find := func() []droppedField { return droppedFields(w.toSend, live, r.set.FieldManager) }
	r.mu.Lock()
	of := r.stores[live.GroupVersionKind()]
	r.mu.Unlock()
	if of == nil {
		return find()
	}
	return of.droppedFields(live, r.set.FieldManager, w.appliedDigest, find)
}

// recordDroppedFields adds the dropped fields to an outcome; a plan shows them as changes that do
// not happen.
func (r *setRun) recordDroppedFields(out outcome, dropped []droppedField, live *unstructured.Unstructured) outcome {
	if len(dropped) == 0 {
		return out
	}
	for _, d := range dropped {
		out.droppedFields = append(out.droppedFields, d.String())
		if r.dry && out.action != Created {
			out.fields = append(out.fields, redact.ConcealField(live.Object, fieldNames(d.path), change.Field{Path: d.String(), New: d.sent}))
		}
	}
	if out.message = joinNotes(out.message, droppedNote(out.droppedFields)); r.dry && (out.action == Unchanged || out.action == Retained) {
		out.action, out.old, out.new = Configured, live, live
	}
	return out
}

// droppedNote names the dropped fields and the next step.
func droppedNote(fields []string) string {
	return fmt.Sprintf("the API server accepts %s and drops it: enable its feature gate, find a webhook that removes it, or remove it from the declaration",
		strings.Join(fields, ", "))
}
