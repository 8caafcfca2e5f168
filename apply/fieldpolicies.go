// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/pergola-dev/pergola/change"
)

// The task of some controllers is to change declared fields. Such a field is left out of the apply
// while the controller owns it, and applied again when the declaration changes. Three values
// decide: the declared one, the one declared at the last apply (in the inventory), and the live
// one.

// FieldPolicy is a field that may be handed over. Sets list them in Set.Yields.
type FieldPolicy struct {
	Kind schema.GroupKind
	// Path is the path of the field; "*" stands for every key of a map, or every item of a list
	// that is keyed by name.
	Path []string
	// Defer reports whether a field with a declared and a different live value is handed over, and
	// why, for people.
	Defer func(FieldConflict) (why string, left bool)
	// Overrides reports whether values of a manager are overwritten if the field is not handed over
	// and the declaration is unchanged. A changed declaration overwrites values of any manager.
	Overrides func(manager string) bool
}

// FieldConflict is a declared field with another value in the live object.
type FieldConflict struct {
	// Declared is the desired value; Live is the current one; it is nil if the live object lacks
	// the field.
	Declared, Live any
	// DeclarationChanged means that the declared value differs from that at the last apply, or is
	// new. An object that was never applied has not moved.
	DeclarationChanged bool
	// Manager is the manager, other than us, that owns the live value; Since is the time of its
	// last write. It is empty if there is none.
	Manager string
	Since   time.Time
	// Key is the map key or item name for the "*" in the path.
	Key string
	// Object is the declared object; LiveObject is the current one. They must not be modified.
	Object, LiveObject *unstructured.Unstructured

	ownManager string
}

// OtherManager returns the other manager that owns a field of the live object, and since when.
func (c FieldConflict) OtherManager(path ...string) (manager string, since time.Time) {
	return latestManagerAt(c.LiveObject, fieldpath.MakePathOrDie(toAnySlice(path)...), c.ownManager)
}

func toAnySlice(path []string) []any {
	out := make([]any, len(path))
	for i, p := range path {
		out[i] = p
	}
	return out
}

// declaredField is a field of Set.Yields that an object declares.
type declaredField struct {
	rule  *FieldPolicy
	path  fieldpath.Path
	key   string
	value any
}

// policyFieldsOf returns the fields of an object that may be handed over.
func (r *setRun) policyFieldsOf(o *unstructured.Unstructured) []declaredField {
	var out []declaredField
	for i := range r.set.FieldPolicies {
		if rule := &r.set.FieldPolicies[i]; rule.Kind == groupKindOf(o) {
			collectDeclaredFields(o.Object, rule.Path, declaredField{rule: rule}, &out)
		}
	}
	return out
}

func collectDeclaredFields(v any, rest []string, at declaredField, out *[]declaredField) {
	if len(rest) == 0 {
		if v != nil {
			at.value = v
			*out = append(*out, at)
		}
		return
	}
	step := func(e fieldpath.PathElement, key string, inner any) {
		next := at
		next.path = append(at.path.Copy(), e)
		if key != "" {
			next.key = key
		}
		collectDeclaredFields(inner, rest[1:], next, out)
	}
	switch x := v.(type) {
	case map[string]any:
		if rest[0] != "*" {
			if inner, there := x[rest[0]]; there {
				step(fieldpath.PathElement{FieldName: &rest[0]}, "", inner)
			}
			return
		}
		for key, inner := range x {
			step(fieldpath.PathElement{FieldName: &key}, key, inner)
		}
	case []any:
		if rest[0] != "*" {
			return
		}
		for _, item := range x {
			m, _ := item.(map[string]any)
			if name, ok := m["name"].(string); ok {
				step(fieldpath.PathElement{Key: &value.FieldList{{Name: "name", Value: value.NewValueInterface(name)}}}, name, item)
			}
		}
	}
}

// hasFieldPolicy reports whether objects of a kind have fields that may be handed over.
func (r *setRun) hasFieldPolicy(gk schema.GroupKind) bool {
	return slices.ContainsFunc(r.set.FieldPolicies, func(y FieldPolicy) bool { return y.Kind == gk })
}

// deferFields removes handed-over fields from the object to be sent, and records those that are
// taken back.
func (r *setRun) deferFields(w *applyRequest, live *unstructured.Unstructured) {
	w.declaredFields = nil
	var stripped *unstructured.Unstructured
	known := r.oldEntries[objectKeyOf(w.ref)]
	for _, f := range r.policyFieldsOf(w.obj) {
		text := pathText(f.path)
		recordField(&w.declaredFields, text, f.value)
		now, there := lookup(live.Object, f.path)
		if there && digest(now) == digest(f.value) {
			continue
		}
		before, had := known.DeclaredFields[text]
		c := FieldConflict{Declared: f.value, DeclarationChanged: len(known.DeclaredFields) > 0 && (!had || before != canonicalJSON(f.value)), Key: f.key,
			Object: w.obj, LiveObject: live, ownManager: r.set.FieldManager}
		if there {
			c.Live = now
			c.Manager, c.Since = latestManagerAt(live, f.path, r.set.FieldManager)
		}
		why, left := f.rule.Defer(c)
		if left && there && c.Manager == "" {
			left = false // no owner is left: omitting the field would remove it
		}
		switch {
		case left:
			if stripped == nil {
				stripped = w.obj.DeepCopy()
			}
			removeField(stripped.Object, f.path)
			w.handedOver = append(w.handedOver, r.handedOverField(w.ref, c, f.path, why))
		case c.DeclarationChanged || f.rule.Overrides != nil && f.rule.Overrides(c.Manager):
			w.fieldsToTakeBack = append(w.fieldsToTakeBack, f.path.String())
		}
	}
	if stripped != nil {
		d := *w.desiredObject
		d.obj = stripped
		w.desiredObject, w.toSend = &d, stripped
	}
}

func (r *setRun) handedOverField(ref Ref, c FieldConflict, path fieldpath.Path, why string) change.HandedOver {
	out := change.HandedOver{Cluster: r.cluster.name, Object: ref, Path: pathText(path), Declared: c.Declared, Live: c.Live, Manager: c.Manager, Reason: why}
	for _, e := range path {
		if e.FieldName != nil {
			out.PathSegments = append(out.PathSegments, *e.FieldName)
		} else {
			out.PathSegments = append(out.PathSegments, c.Key)
		}
	}
	if !c.Since.IsZero() {
		out.LastWrite = &c.Since
	}
	return out
}

func recordField(fields *map[string]string, path string, v any) {
	if *fields == nil {
		*fields = map[string]string{}
	}
	(*fields)[path] = canonicalJSON(v)
}

func canonicalJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

func pathText(p fieldpath.Path) string { return strings.TrimPrefix(p.String(), ".") }

// canForce reports whether an apply was refused only because of fields that are taken back from
// others.
func (w *applyRequest) canForce(err error) bool {
	if len(w.fieldsToTakeBack) == 0 || !isManagerConflict(err) {
		return false
	}
	status, _ := statusOf(err)
	return !slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || !slices.Contains(w.fieldsToTakeBack, c.Field)
	})
}

// withoutFieldsToTakeBack returns a conflict without the fields that are taken back anyway, for the
// message.
func (w *applyRequest) withoutFieldsToTakeBack(err error) error {
	if len(w.fieldsToTakeBack) == 0 || !isManagerConflict(err) {
		return err
	}
	status, _ := statusOf(err)
	details := *status.Details
	details.Causes = slices.DeleteFunc(slices.Clone(details.Causes), func(c metav1.StatusCause) bool { return slices.Contains(w.fieldsToTakeBack, c.Field) })
	if len(details.Causes) == 0 {
		return err
	}
	status.Details = &details
	return &apierrors.StatusError{ErrStatus: status}
}

// LatestManager returns the manager that wrote a field of an object last, and when, or "" if none
// is known.
func LatestManager(o *unstructured.Unstructured, path fieldpath.Path) (manager string, at time.Time) {
	return latestManagerAt(o, path, "")
}

// latestManagerAt is latestManager with the time. Subresources count, too: a binding sets fields of
// the spec.
func latestManagerAt(o *unstructured.Unstructured, path fieldpath.Path, except string) (manager string, at time.Time) {
	for _, entry := range managersOf(o) {
		if entry.Manager == except || entry.Time != nil && entry.Time.Time.Before(at) {
			continue
		}
		if set := parseFields(entry); set != nil && set.Has(path) {
			manager = entry.Manager
			if entry.Time != nil {
				at = entry.Time.Time
			}
		}
	}
	return manager, at
}

// removeField removes a field, and its parents if they become empty, except items of lists.
func removeField(v any, path fieldpath.Path) {
	if len(path) == 0 {
		return
	}
	inner, there := childAt(v, path[0])
	m, isMap := v.(map[string]any)
	if !there {
		return
	}
	if list, isList := inner.([]any); isList && isMap && len(path) == 2 && path[1].Key != nil {
		m[*path[0].FieldName] = slices.DeleteFunc(list, func(item any) bool { return hasKeys(item, *path[1].Key) })
		return
	}
	if len(path) > 1 {
		removeField(inner, path[1:])
		if left, ok := inner.(map[string]any); !ok || len(left) > 0 {
			return
		}
	}
	if isMap && path[0].FieldName != nil {
		delete(m, *path[0].FieldName)
	}
}

// declaredValues returns the declared values of fields that may be handed over, for the next run.
// For a new object, they were not collected before.
func (r *setRun) declaredValues(w applyRequest) map[string]string {
	if w.declaredFields == nil {
		for _, f := range r.policyFieldsOf(w.obj) {
			recordField(&w.declaredFields, pathText(f.path), f.value)
		}
	}
	return w.declaredFields
}

// sourceFile returns the file of a source without the line, which changes with every edit.
func (r *setRun) sourceFile(source string) string {
	if !r.set.RecordSources {
		return ""
	}
	if i := strings.LastIndexByte(source, ':'); i > 0 {
		return source[:i]
	}
	return source
}

// HandedOverFields returns the declared fields of a set that are handed over now. It makes no
// request once the caches are open, and skips objects that are not cached.
func (e *Engine) HandedOverFields(ctx context.Context, c *Cluster, s Set, inv Inventory) ([]change.HandedOver, error) {
	r := e.newRun(c, &s, inv, ApplyOptions{}, true)
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	r.desired = slices.DeleteFunc(r.desired, func(d *desiredObject) bool { return !r.hasFieldPolicy(d.ref.GroupKind()) })
	if len(r.desired) == 0 {
		return nil, nil
	}
	if err := r.loadState(ctx); err != nil {
		return nil, err
	}
	var out []change.HandedOver
	for _, d := range r.desired {
		if live, _ := r.cached(d.ref); live != nil {
			w := r.requestFor(d)
			r.deferFields(&w, live)
			out = append(out, w.handedOver...)
		}
	}
	return out, nil
}

// HandedOverFieldsOf returns the handed-over fields of one declared object, by the live object
// alone, for callers that do not apply it.
func HandedOverFieldsOf(s Set, declared, live *unstructured.Unstructured) []change.HandedOver {
	r := &setRun{cluster: &Cluster{}, set: &s, oldEntries: map[objectKey]Entry{}}
	w := applyRequest{desiredObject: &desiredObject{ref: RefOf(declared), obj: declared}}
	r.deferFields(&w, live)
	return w.handedOver
}
