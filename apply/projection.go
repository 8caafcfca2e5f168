// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// ownedFields returns the fields of the main resource that a manager applied, from managedFields.
func ownedFields(o *unstructured.Unstructured, manager string) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, entry := range managersOf(o) {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		if set := parseFields(entry); set != nil {
			out = out.Union(set)
		}
	}
	return out
}

func parseFields(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	if entry.FieldsV1 == nil {
		return nil
	}
	set := fieldpath.NewSet()
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil
	}
	return set
}

// projectFields extracts the fields of a set from a value. Lists become maps by their key, so that
// items which others insert between ours change nothing; a missing field is null.
func projectFields(v any, set *fieldpath.Set) any {
	out := map[string]any{}
	set.Members.Iterate(func(e fieldpath.PathElement) {
		if _, deeper := set.Children.Get(e); !deeper {
			out[e.String()], _ = childAt(v, e)
		}
	})
	set.Children.Iterate(func(e fieldpath.PathElement) {
		deeper, _ := set.Children.Get(e)
		inner, _ := childAt(v, e)
		out[e.String()] = projectFields(inner, deeper)
	})
	return out
}

// childAt follows one element of a path.
func childAt(v any, e fieldpath.PathElement) (any, bool) {
	switch {
	case e.FieldName != nil:
		m, _ := v.(map[string]any)
		inner, ok := m[*e.FieldName]
		return inner, ok
	case e.Key != nil:
		list, _ := v.([]any)
		for _, item := range list {
			if hasKeys(item, *e.Key) {
				return item, true
			}
		}
	case e.Value != nil:
		list, _ := v.([]any)
		for _, item := range list {
			if value.Equals(value.NewValueInterface(item), *e.Value) {
				return item, true
			}
		}
	case e.Index != nil:
		if list, _ := v.([]any); *e.Index >= 0 && *e.Index < len(list) {
			return list[*e.Index], true
		}
	}
	return nil, false
}

func hasKeys(item any, keys value.FieldList) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range keys {
		if !value.Equals(value.NewValueInterface(m[k.Name]), k.Value) {
			return false
		}
	}
	return true
}

// lookup follows a whole path.
func lookup(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		var ok bool
		if v, ok = childAt(v, e); !ok {
			return nil, false
		}
	}
	return v, true
}

// liveDigest is the digest of the fields that a manager owns in a live object, without the
// create-only ones. It omits the values of a Secret, because a digest of a short password could be
// guessed; hasSameSecretData compares them.
func liveDigest(live *unstructured.Unstructured, manager string, createOnly []string) string {
	set := ownedFields(live, manager)
	content := live.Object
	if len(createOnly) > 0 {
		stripped := live.DeepCopy()
		for _, f := range createOnly {
			createOnlyFields[f].remove(stripped)
		}
		content, set = stripped.Object, withoutCreateOnly(set, createOnly)
	}
	projected, _ := projectFields(content, set).(map[string]any)
	if groupKindOf(live) == secretKind {
		projected[".data"] = secretKeys(live, set)
	}
	return digest(projected)
}

// appliedDigest is the digest of an apply request: the object and its field manager.
func appliedDigest(o *unstructured.Unstructured, manager string, createOnly []string) string {
	content := o
	if len(createOnly) > 0 || groupKindOf(o) == secretKind {
		content = o.DeepCopy()
		for _, f := range createOnly {
			createOnlyFields[f].remove(content)
		}
		if data, ok := content.Object["data"].(map[string]any); ok && groupKindOf(o) == secretKind {
			content.Object["data"] = slices.Sorted(maps.Keys(data))
		}
	}
	return digest([]any{manager, createOnly, content.Object})
}

// secretKeys returns the data keys of a Secret that are in a set of fields.
func secretKeys(live *unstructured.Unstructured, set *fieldpath.Set) []string {
	data, _ := live.Object["data"].(map[string]any)
	var out []string
	for k := range data {
		if set.Has(fieldpath.MakePathOrDie("data", k)) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// hasSameSecretData compares the values of a desired Secret with those in the cluster.
func hasSameSecretData(want, live *unstructured.Unstructured) bool {
	wanted, _ := want.Object["data"].(map[string]any)
	have, _ := live.Object["data"].(map[string]any)
	for k, v := range wanted {
		if have[k] != v {
			return false
		}
	}
	return true
}

// digest is a SHA-256 over canonical JSON, cut to 128 bits to keep inventories small.
func digest(v any) string {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(v); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
