package apply

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Some fields exclude each other, and the API server fills one of them in where none is declared:
// how a Deployment rolls, the emptyDir of a volume that only has a name. That value is nobody's, so
// an apply leaves it where it is, also when the declaration has changed to what excludes it, and
// the server refuses both together. A client that sends whole objects, as kubectl and upstream's
// resource-manager do, has no such trouble. So what is left over becomes ours first, by
// managedFields alone, and the same apply takes it away.
//
// The other way round it is a map that stays empty: of one whose fields all leave a declaration
// that still has the map, {}, the library of server-side apply leaves null
// (sigs.k8s.io/structured-merge-diff, typed/remove.go), which definitions of custom resources do
// not admit. So its fields are taken away first, and the same apply finds nothing of ours in it.

// leftover are fields of a map in a live object that cannot stay beside what is declared of that
// map.
type leftover struct {
	// holder leads to the map, or to the list that has it under the name item.
	holder []string
	item   string
	fields []string
}

// rollsBy are the workloads whose pods roll unless another type is declared, by where they say so.
var rollsBy = map[schema.GroupKind]string{deploymentKind: "strategy", statefulSet: "updateStrategy"}

// podsAt is where workloads that can change have the description of their pods.
var podsAt = map[schema.GroupKind][]string{
	deploymentKind:                      {"spec", "template", "spec"},
	statefulSet:                         {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:   {"spec", "jobTemplate", "spec", "template", "spec"},
	{Kind: "ReplicationController"}:     {"spec", "template", "spec"},
}

// leftovers are those of a live object beside what is sent to it, as far as no manager has them.
func leftovers(send, live *unstructured.Unstructured) []leftover {
	gk := groupKindOf(send)
	var found []leftover
	if field, rolls := rollsBy[gk]; rolls {
		l := leftover{holder: []string{"spec", field}, fields: []string{"rollingUpdate"}}
		if declared := l.in(send); declared["type"] != nil && declared["type"] != "RollingUpdate" && declared["rollingUpdate"] == nil && l.in(live)["rollingUpdate"] != nil {
			found = append(found, l)
		}
	}
	if pods := podsAt[gk]; pods != nil {
		volumes := append(slices.Clone(pods), "volumes")
		list, _, _ := unstructured.NestedSlice(send.Object, volumes...)
		for _, v := range list {
			declared, _ := v.(map[string]any)
			name, _ := declared["name"].(string)
			l := leftover{holder: volumes, item: name}
			for field := range l.in(live) {
				if _, stays := declared[field]; !stays && len(declared) > 1 {
					l.fields = append(l.fields, field)
				}
			}
			if len(l.fields) > 0 {
				found = append(found, l)
			}
		}
	}
	managers := managersOf(live)
	return slices.DeleteFunc(found, func(l leftover) bool {
		return slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool {
			set := parseFields(m)
			return set == nil && m.FieldsV1 != nil || set != nil && slices.ContainsFunc(l.paths(), func(p fieldpath.Path) bool { return hasAnyOf(set, p) })
		})
	})
}

// emptied are the maps of which nothing is declared but that they are there, and of which all
// fields in a live object are ours and nobody else's.
func (r *run) emptied(send, live *unstructured.Unstructured) []leftover {
	var ours, others []*fieldpath.Set
	for _, m := range managersOf(live) {
		set := parseFields(m)
		switch {
		case set == nil && m.FieldsV1 != nil:
			return nil
		case set == nil:
		case r.isOurs(m):
			ours = append(ours, set)
		default:
			others = append(others, set)
		}
	}
	has := func(sets []*fieldpath.Set, p fieldpath.Path) bool {
		return slices.ContainsFunc(sets, func(set *fieldpath.Set) bool { return hasAnyOf(set, p) })
	}
	var found []leftover
	var look func(at []string, declared, lives map[string]any)
	look = func(at []string, declared, lives map[string]any) {
		for _, field := range slices.Sorted(maps.Keys(declared)) {
			want, isMap := declared[field].(map[string]any)
			have, _ := lives[field].(map[string]any)
			l := leftover{holder: append(slices.Clone(at), field), fields: slices.Sorted(maps.Keys(have))}
			switch {
			case !isMap || len(have) == 0:
			case len(want) > 0:
				look(l.holder, want, have)
			case !slices.ContainsFunc(l.paths(), func(p fieldpath.Path) bool { return !has(ours, p) || has(others, p) }):
				found = append(found, l)
			}
		}
	}
	look(nil, send.Object, live.Object)
	return found
}

// removing takes the fields of leftovers out of a live object. They are nobody's then: one that the
// server fills in again at once stays, as it does beside any declaration that leaves it open.
func (r *run) removing(ctx context.Context, live *unstructured.Unstructured, left []leftover) error {
	ops := []any{map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}}
	gone := fieldpath.NewSet()
	for _, l := range left {
		for i, path := range l.paths() {
			at := ""
			for _, name := range append(slices.Clone(l.holder), l.fields[i]) {
				at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			}
			ops = append(ops, map[string]any{"op": "remove", "path": at})
			gone.Insert(path)
		}
	}
	managers := managersOf(live)
	for i, m := range managers {
		if set := parseFields(m); r.isOurs(m) && set != nil {
			text, err := set.Difference(gone).RecursiveDifference(gone).ToJSON()
			if err != nil {
				return safef("the field managers of %s cannot be read", RefOf(live))
			}
			managers[i].FieldsV1 = metav1.NewFieldsV1(string(text))
		}
	}
	ops = append(ops, map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": managers})
	body, err := json.Marshal(ops)
	if err == nil {
		_, err = r.c.patchRef(ctx, RefOf(live), types.JSONPatchType, body, r.set.FieldManager, "")
	}
	return err
}

// in is the map in an object, the object's own; nil if it has none.
func (l leftover) in(o *unstructured.Unstructured) map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, l.holder...)
	if l.item == "" {
		m, _ := v.(map[string]any)
		return m
	}
	list, _ := v.([]any)
	for _, item := range list {
		if m, _ := item.(map[string]any); m["name"] == l.item {
			return m
		}
	}
	return nil
}

func (l leftover) paths() []fieldpath.Path {
	var out []fieldpath.Path
	for _, field := range l.fields {
		var parts []any
		for _, name := range l.holder {
			parts = append(parts, name)
		}
		if l.item != "" {
			parts = append(parts, fieldpath.KeyByFields("name", l.item))
		}
		out = append(out, fieldpath.MakePathOrDie(append(parts, field)...))
	}
	return out
}

// replaced is a copy of an object in which the map is the one that another object has.
func (l leftover) replaced(o, from *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	if m := l.in(out); m != nil {
		clear(m)
		maps.Copy(m, (&unstructured.Unstructured{Object: l.in(from)}).DeepCopy().Object)
	}
	return out
}

// withoutLeftovers goes on with an apply that the server refused, where leftovers may be the
// reason; refused stays the error where they are not.
func (r *run) withoutLeftovers(ctx context.Context, w wanted, opts patchOptions, refused error) (*unstructured.Unstructured, bool, error) {
	for range 3 { // others may write meanwhile
		live, err := r.c.GetLive(ctx, w.ref)
		if err != nil || opts.uid != "" && live.GetUID() != opts.uid || !slices.ContainsFunc(managersOf(live), r.isOurs) {
			return nil, false, refused
		}
		left, empty := leftovers(w.send, live), r.emptied(w.send, live)
		if len(left)+len(empty) == 0 {
			return nil, false, refused
		}
		if opts.dry {
			answer, err := r.foreseeWithout(ctx, w, live, append(left, empty...), opts)
			return answer, false, err
		}
		if len(left) > 0 {
			live, err = r.patchManagers(ctx, live, r.owning(live, left))
		}
		if err == nil && len(empty) > 0 {
			err = r.removing(ctx, live, empty)
		}
		if err == nil {
			return r.c.patchApply(ctx, w.send, opts)
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return nil, false, err
		}
	}
	return nil, false, refused
}

// owning is the patch of managedFields by which leftovers become ours.
func (r *run) owning(live *unstructured.Unstructured, left []leftover) []ssa.JSONPatch {
	managers := managersOf(live)
	for i, m := range managers {
		set := parseFields(m)
		if !r.isOurs(m) || set == nil {
			continue
		}
		for _, l := range left {
			for _, path := range l.paths() {
				set.Insert(path)
			}
		}
		if text, err := set.ToJSON(); err == nil {
			managers[i].FieldsV1 = metav1.NewFieldsV1(string(text))
		}
		break
	}
	return []ssa.JSONPatch{{Operation: "replace", Path: "/metadata/managedFields", Value: managers}}
}

// foreseeWithout is what the server will make of an object without its leftovers. It is asked
// twice: what an apply comes to that leaves the maps in question as they live, and what the whole
// object is worth with these as they are declared.
func (r *run) foreseeWithout(ctx context.Context, w wanted, live *unstructured.Unstructured, left []leftover, opts patchOptions) (*unstructured.Unstructured, error) {
	trial := w.send
	for _, l := range left {
		trial = l.replaced(trial, live)
	}
	answer, _, err := r.c.patchApply(ctx, trial, opts)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		answer = l.replaced(answer, w.send)
	}
	return r.asReplaced(ctx, w.ref, answer)
}
