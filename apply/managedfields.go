// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// managedFields take most of the memory of an object: a tree of small maps, equal in all objects
// applied from the same template. The live cache stores them as text, once for equal ones.

// fieldSetTexts stores field sets as JSON, each once.
type fieldSetTexts struct {
	mu    sync.Mutex
	known map[string]string
}

// maxInternedFieldSets bounds the memory of field sets that no object has now.
const maxInternedFieldSets = 4096

func (t *fieldSetTexts) intern(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have, ok := t.known[text]; ok {
		return have
	}
	if t.known == nil || len(t.known) >= maxInternedFieldSets {
		t.known = map[string]string{}
	}
	t.known[text] = text
	return text
}

// compact returns an object with its field sets as text; it does not modify o.
func (t *fieldSetTexts) compact(o *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := o.Object["metadata"].(map[string]any)
	managers, _ := metadata["managedFields"].([]any)
	if len(managers) == 0 {
		return o
	}
	short := make([]any, 0, len(managers))
	for _, m := range managers {
		entry, _ := m.(map[string]any)
		fields, tree := entry["fieldsV1"].(map[string]any)
		if text, err := json.Marshal(fields); tree && err == nil {
			entry = maps.Clone(entry)
			entry["fieldsV1"] = t.intern(string(text))
		}
		short = append(short, entry)
	}
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	metadata = maps.Clone(metadata)
	metadata["managedFields"] = short
	out.Object["metadata"] = metadata
	return out
}

// managersOf returns the managedFields of an object of the live cache or of the server.
func managersOf(o *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	metadata, _ := o.Object["metadata"].(map[string]any)
	managers, _ := metadata["managedFields"].([]any)
	out := make([]metav1.ManagedFieldsEntry, 0, len(managers))
	for _, m := range managers {
		entry, _ := m.(map[string]any)
		text := func(field string) string { s, _ := entry[field].(string); return s }
		e := metav1.ManagedFieldsEntry{Manager: text("manager"), Operation: metav1.ManagedFieldsOperationType(text("operation")),
			APIVersion: text("apiVersion"), FieldsType: text("fieldsType"), Subresource: text("subresource")}
		if at, err := time.Parse(time.RFC3339, text("time")); err == nil {
			e.Time = &metav1.Time{Time: at}
		}
		switch fields := entry["fieldsV1"].(type) {
		case string:
			e.FieldsV1 = metav1.NewFieldsV1(fields)
		case map[string]any:
			if raw, err := json.Marshal(fields); err == nil {
				e.FieldsV1 = metav1.NewFieldsV1(string(raw))
			}
		}
		out = append(out, e)
	}
	return out
}

// withPlainManagedFields returns an object with managedFields as the server sent them, for callers
// that read them directly.
func withPlainManagedFields(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := withoutManagedFields(o)
	if managers := managersOf(o); len(managers) > 0 {
		out.SetManagedFields(managers)
	}
	return out
}

// withoutManagedFields returns an object without managedFields. It shares everything below metadata
// with o.
func withoutManagedFields(o *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := o.Object["metadata"].(map[string]any)
	out := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	out.Object["metadata"] = metadata
	return out
}
