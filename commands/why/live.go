// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render/strict"
)

const annotationOrigin = "resources.gardener.cloud/origin"

// addLive compares with the cluster. It reports whether the field, or without a field the object,
// exists.
func (e *explainer) addLive(ctx context.Context, a *Answer, m objectMatch, list steps, value any) bool {
	if e.opts.ReadObject == nil {
		return false
	}
	if !slices.Contains(e.opts.Clusters, m.cluster) {
		a.Live = &LiveState{Verdict: VerdictUnreachable, Message: fmt.Sprintf("no access to cluster %s: set KUBECONFIG, or give --kubeconfig PATH; --offline reads no cluster", m.cluster)}
		return false
	}
	object, err := e.opts.ReadObject(ctx, m.cluster, a.Subject.Object)
	switch {
	case err != nil:
		a.Live = &LiveState{Verdict: VerdictUnreachable, Message: redact.Text(err.Error())}
		return false
	case object == nil:
		a.Live = &LiveState{Verdict: VerdictMissing, Message: "the cluster does not have the object"}
		return false
	}
	a.Live = &LiveState{Origin: object.GetAnnotations()[annotationOrigin]}
	inGit := m.path
	m, list, value = storedForm(m, list, value)
	found, has, err := followPath(object.Object, m.path)
	a.Live.HandedOver = handedOverFields(m, object, list)
	if err != nil && e.isExplainedByHandover(m, list, nil, a.Live.HandedOver) {
		a.Live.Verdict, a.Live.Message = VerdictHandedOver, handedOverText(a.Live.HandedOver)
		return false
	}
	if err != nil {
		a.Live.Verdict, a.Live.Message = VerdictMissing, "the cluster's object does not have the field"
		return false
	}
	a.Live.Managers = managersOf(object, found, a.Manager)
	if m.path == "" {
		a.Live.Verdict, a.Live.Message = VerdictSame, "the cluster has the object; name a field to compare it"
		return true
	}
	a.Live.Value = redactedValue(object, found, has)
	if list == nil || m.path == inGit {
		a.Subject.Field = found.String()
	}
	e.setVerdict(a, m, list, value, object, has)
	return true
}

// setVerdict explains the difference between Git and the cluster.
func (e *explainer) setVerdict(a *Answer, m objectMatch, list steps, value any, live *unstructured.Unstructured, has any) {
	owners := func(ours bool) []string {
		var out []string
		for _, manager := range a.Live.Managers {
			if manager.IsOurs == ours {
				out = append(out, manager.Name)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	others, ours := owners(false), len(owners(true)) > 0
	a.Live.Verdict, a.Live.Message = VerdictSame, "as in Git"
	switch {
	case list == nil:
		a.Live.Verdict, a.Live.Message = VerdictUndeclared, "Git does not declare it: "+ownersText(others, "the API server sets it")
	case m.declaration != nil && m.declaration.Secret == landscapes.SecretEncrypted && isSecret(m.object) && (list[0].key == fieldData || list[0].key == fieldStringData):
		a.Live.Verdict, a.Live.Message = VerdictUnknown, "Git's value is encrypted, and no key here opens it"
	case isSymbolic(value):
		a.Live.Verdict, a.Live.Message = VerdictUnknown, "Git's value depends on facts that only the cluster knows"
	case e.isEqual(m.object, list, value, has):
		if !ours && len(others) > 0 {
			a.Live.Message = "as in Git, but not owned by Pergola: " + ownersText(others, "")
		}
	case live.GetAnnotations()["resources.gardener.cloud/ignore"] == "true":
		a.Live.Verdict, a.Live.Message = VerdictOtherManager, "the object is ignored (annotation resources.gardener.cloud/ignore)"
	case e.isExplainedByHandover(m, list, has, a.Live.HandedOver):
		a.Live.Verdict, a.Live.Message = VerdictHandedOver, handedOverText(a.Live.HandedOver)
	case len(others) > 0 && !ours:
		a.Live.Verdict, a.Live.Message = VerdictOtherManager, "differs from Git, and stays: "+ownersText(others, "")
		if e.landscape.Config.Spec.ForceConflicts {
			a.Live.Message += "; the next apply overwrites it (spec.forceConflicts)"
		}
	default:
		a.Live.Verdict = VerdictDiffers
		a.Live.Message = "differs from Git, although Pergola owns it: drift, or this revision is not applied yet (pergola diff --live, pergola apply)"
	}
}

// isSymbolic reports whether a text stands for a fact that only the cluster has.
func isSymbolic(value any) bool {
	text, ok := value.(string)
	return ok && strings.Contains(text, strict.SymbolicMark)
}

func ownersText(managers []string, otherwise string) string {
	if len(managers) == 0 {
		return otherwise
	}
	return "owned by " + strings.Join(managers, ", ")
}

// isEqual compares like plans: quantities by value, numbers in any notation.
func (e *explainer) isEqual(object *unstructured.Unstructured, list steps, a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	wrap := func(value any) map[string]any {
		out := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind()}
		inner := out
		keys := list.keys()
		for i, key := range keys {
			if i == len(keys)-1 {
				inner[key] = value
				break
			}
			next, _ := inner[key].(map[string]any)
			if next == nil {
				next = map[string]any{}
			}
			inner[key] = next
			inner = next
		}
		return out
	}
	switch a.(type) {
	case map[string]any, []any:
		return isSubset(a, b)
	}
	return len(redact.Compare(wrap(a), wrap(b))) == 0
}

// isSubset reports whether the cluster has all of Git's subtree, apart from facts; the API may add
// fields.
func isSubset(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		for key, value := range w {
			if !ok || !isSubset(value, h[key]) {
				return false
			}
		}
		return true
	case []any:
		h, _ := have.([]any)
		if len(h) != len(w) {
			return false
		}
		for i := range w {
			if !isSubset(w[i], h[i]) {
				return false
			}
		}
		return true
	}
	return isSymbolic(want) || reflect.DeepEqual(want, have) || fmt.Sprint(want) == fmt.Sprint(have)
}

// managersOf returns the managers that own a field or fields in it.
func managersOf(object *unstructured.Unstructured, list steps, ours string) []Manager {
	var out []Manager
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource == "status" && (len(list) == 0 || list[0].key != "status") {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(rawFields(entry), &fields) != nil {
			continue
		}
		owns, part := ownership(fields, object.Object, list)
		if !owns && !part {
			continue
		}
		manager := Manager{Name: entry.Manager, Operation: string(entry.Operation), IsPart: part && !owns, IsOurs: entry.Manager == ours}
		if entry.Time != nil {
			at := entry.Time.UTC()
			manager.Time = &at
		}
		out = append(out, manager)
	}
	slices.SortFunc(out, func(a, b Manager) int { return strings.Compare(a.Name+a.Operation, b.Name+b.Operation) })
	return out
}

func rawFields(entry metav1.ManagedFieldsEntry) []byte {
	raw, err := entry.FieldsV1.MarshalJSON()
	if err != nil {
		return nil
	}
	return raw
}

// ownership follows a path in a field set. owns: the set has the field or an atomic field around
// it; part: only fields in it.
func ownership(fields map[string]any, value any, list steps) (owns, part bool) {
	for _, s := range list {
		var next any
		switch {
		case !s.isItem():
			m, _ := value.(map[string]any)
			value, next = m[s.key], fields["f:"+s.key]
		default:
			items, _ := value.([]any)
			if s.index >= len(items) {
				return false, false
			}
			value = items[s.index]
			next = itemFields(fields, value, s.index)
		}
		inner, ok := next.(map[string]any)
		if !ok {
			return false, false
		}
		if len(inner) == 0 {
			return true, false // an atomic field, or the field itself
		}
		fields = inner
	}
	_, whole := fields["."]
	return whole && len(fields) == 1, true
}

// itemFields returns the field set of an item: by its keys, value or index.
func itemFields(fields map[string]any, item any, index int) any {
	for name, inner := range fields {
		if text, ok := strings.CutPrefix(name, "k:"); ok {
			var keys map[string]any
			if json.Unmarshal([]byte(text), &keys) == nil && isSubset(keys, item) {
				return inner
			}
		}
		if text, ok := strings.CutPrefix(name, "v:"); ok {
			var value any
			if json.Unmarshal([]byte(text), &value) == nil && fmt.Sprint(value) == fmt.Sprint(item) {
				return inner
			}
		}
	}
	return fields[fmt.Sprintf("i:%d", index)]
}
