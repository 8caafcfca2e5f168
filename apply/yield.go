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

// Yield is a field that may be handed over. Sets list them in Set.Yields.
type Yield struct {
	Kind schema.GroupKind
	// Path is the path of the field; "*" stands for every key of a map, or every item of a list
	// that is keyed by name.
	Path []string
	// Left reports whether a field with a declared and a different live value is handed over, and
	// why, for people.
	Left func(Contest) (why string, left bool)
	// Takes reports whether values of a manager are overwritten if the field is not handed over and
	// the declaration is unchanged. A changed declaration overwrites values of any manager.
	Takes func(manager string) bool
}

// Contest is a declared field with another value in the live object.
type Contest struct {
	// Declared is the desired value, Live the current one; nil if the live object lacks the field.
	Declared, Live any
	// Moved means that the declared value differs from that at the last apply, or is new. An object
	// that was never applied has not moved.
	Moved bool
	// By is the manager, other than us, that owns the live value, and Since the time of its last
	// write; empty if there is none.
	By    string
	Since time.Time
	// Key is the map key or item name for the "*" in the path.
	Key string
	// Object is the declared object, LiveObject the current one. They must not be modified.
	Object, LiveObject *unstructured.Unstructured

	manager string
}

// Owner returns the other manager that owns a field of the live object, and since when.
func (c Contest) Owner(path ...string) (manager string, since time.Time) {
	return lastOwner(c.LiveObject, fieldpath.MakePathOrDie(anys(path)...), c.manager)
}

func anys(path []string) []any {
	out := make([]any, len(path))
	for i, p := range path {
		out[i] = p
	}
	return out
}

// declaredField is a field of Set.Yields that an object declares.
type declaredField struct {
	rule  *Yield
	path  fieldpath.Path
	key   string
	value any
}

// fieldsOf returns the fields of an object that may be handed over.
func (r *run) fieldsOf(o *unstructured.Unstructured) []declaredField {
	var out []declaredField
	for i := range r.set.Yields {
		if rule := &r.set.Yields[i]; rule.Kind == groupKindOf(o) {
			expand(o.Object, rule.Path, declaredField{rule: rule}, &out)
		}
	}
	return out
}

func expand(v any, rest []string, at declaredField, out *[]declaredField) {
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
		expand(inner, rest[1:], next, out)
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

// yields reports whether objects of a kind have fields that may be handed over.
func (r *run) yields(gk schema.GroupKind) bool {
	return slices.ContainsFunc(r.set.Yields, func(y Yield) bool { return y.Kind == gk })
}

// yield removes handed-over fields from the object to be sent, and records those that are taken
// back.
func (r *run) yield(w *wanted, live *unstructured.Unstructured) {
	w.fields = nil
	var stripped *unstructured.Unstructured
	known := r.old[keyOf(w.ref)]
	for _, f := range r.fieldsOf(w.obj) {
		text := pathText(f.path)
		note(&w.fields, text, f.value)
		now, there := lookup(live.Object, f.path)
		if there && digest(now) == digest(f.value) {
			continue
		}
		before, had := known.Fields[text]
		c := Contest{Declared: f.value, Moved: len(known.Fields) > 0 && (!had || before != canonical(f.value)), Key: f.key,
			Object: w.obj, LiveObject: live, manager: r.set.FieldManager}
		if there {
			c.Live = now
			c.By, c.Since = lastOwner(live, f.path, r.set.FieldManager)
		}
		why, left := f.rule.Left(c)
		if left && there && c.By == "" {
			left = false // no owner is left: omitting the field would remove it
		}
		switch {
		case left:
			if stripped == nil {
				stripped = w.obj.DeepCopy()
			}
			removeAt(stripped.Object, f.path)
			w.handed = append(w.handed, r.handedOver(w.ref, c, f.path, why))
		case c.Moved || f.rule.Takes != nil && f.rule.Takes(c.By):
			w.reclaimed = append(w.reclaimed, f.path.String())
		}
	}
	if stripped != nil {
		d := *w.desired
		d.obj = stripped
		w.desired, w.send = &d, stripped
	}
}

func (r *run) handedOver(ref Ref, c Contest, path fieldpath.Path, why string) change.HandedOver {
	out := change.HandedOver{Cluster: r.c.name, Object: ref, Path: pathText(path), Declared: c.Declared, Live: c.Live, By: c.By, Why: why}
	for _, e := range path {
		if e.FieldName != nil {
			out.Steps = append(out.Steps, *e.FieldName)
		} else {
			out.Steps = append(out.Steps, c.Key)
		}
	}
	if !c.Since.IsZero() {
		out.Since = &c.Since
	}
	return out
}

func note(fields *map[string]string, path string, v any) {
	if *fields == nil {
		*fields = map[string]string{}
	}
	(*fields)[path] = canonical(v)
}

func canonical(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

func pathText(p fieldpath.Path) string { return strings.TrimPrefix(p.String(), ".") }

// mayForce reports whether an apply was refused only because of fields that are taken back from
// others.
func (w *wanted) mayForce(err error) bool {
	if len(w.reclaimed) == 0 || !isManagerConflict(err) {
		return false
	}
	status, _ := statusOf(err)
	return !slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || !slices.Contains(w.reclaimed, c.Field)
	})
}

// contested returns a conflict without the fields that are taken back anyway, for the message.
func (w *wanted) contested(err error) error {
	if len(w.reclaimed) == 0 || !isManagerConflict(err) {
		return err
	}
	status, _ := statusOf(err)
	details := *status.Details
	details.Causes = slices.DeleteFunc(slices.Clone(details.Causes), func(c metav1.StatusCause) bool { return slices.Contains(w.reclaimed, c.Field) })
	if len(details.Causes) == 0 {
		return err
	}
	status.Details = &details
	return &apierrors.StatusError{ErrStatus: status}
}

// LastOwner returns the manager that wrote a field of an object last, and when; empty if none is
// known.
func LastOwner(o *unstructured.Unstructured, path fieldpath.Path) (manager string, at time.Time) {
	return lastOwner(o, path, "")
}

// lastOwner is ownerOf with the time. Subresources count, too: a binding sets fields of the spec.
func lastOwner(o *unstructured.Unstructured, path fieldpath.Path, except string) (manager string, at time.Time) {
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

// removeAt removes a field, and its parents if they become empty, except items of lists.
func removeAt(v any, path fieldpath.Path) {
	if len(path) == 0 {
		return
	}
	inner, there := child(v, path[0])
	m, isMap := v.(map[string]any)
	if !there {
		return
	}
	if list, isList := inner.([]any); isList && isMap && len(path) == 2 && path[1].Key != nil {
		m[*path[0].FieldName] = slices.DeleteFunc(list, func(item any) bool { return matches(item, *path[1].Key) })
		return
	}
	if len(path) > 1 {
		removeAt(inner, path[1:])
		if left, ok := inner.(map[string]any); !ok || len(left) > 0 {
			return
		}
	}
	if isMap && path[0].FieldName != nil {
		delete(m, *path[0].FieldName)
	}
}

// declared returns the declared values of fields that may be handed over, for the next run. For a
// new object, yield has not collected them.
func (r *run) declared(w wanted) map[string]string {
	if w.fields == nil {
		for _, f := range r.fieldsOf(w.obj) {
			note(&w.fields, pathText(f.path), f.value)
		}
	}
	return w.fields
}

// fileOf returns the file of a source without the line, which changes with every edit.
func (r *run) fileOf(source string) string {
	if !r.set.KeepSources {
		return ""
	}
	if i := strings.LastIndexByte(source, ':'); i > 0 {
		return source[:i]
	}
	return source
}

// HandedOver returns the declared fields of a set that are handed over now. It makes no request
// once the caches are open, and skips objects that are not cached.
func (e *Engine) HandedOver(ctx context.Context, c *Cluster, s Set, inv Inventory) ([]change.HandedOver, error) {
	r := e.newRun(c, &s, inv, ApplyOptions{}, true)
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	r.desired = slices.DeleteFunc(r.desired, func(d *desired) bool { return !r.yields(d.ref.GroupKind()) })
	if len(r.desired) == 0 {
		return nil, nil
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	var out []change.HandedOver
	for _, d := range r.desired {
		if live, _ := r.live(d.ref); live != nil {
			w := r.wish(d)
			r.yield(&w, live)
			out = append(out, w.handed...)
		}
	}
	return out, nil
}

// HandedOverOf returns the handed-over fields of one declared object, by the live object alone, for
// callers that do not apply it.
func HandedOverOf(s Set, declared, live *unstructured.Unstructured) []change.HandedOver {
	r := &run{c: &Cluster{}, set: &s, old: map[key]Entry{}}
	w := wanted{desired: &desired{ref: RefOf(declared), obj: declared}}
	r.yield(&w, live)
	return w.handed
}
