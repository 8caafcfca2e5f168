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

// Some fields exclude each other, and the API server defaults one of them, such as the strategy of
// a Deployment or a volume's emptyDir. Nobody owns the default, so an apply leaves it, even if the
// declaration now has a field that excludes it. The server then rejects the combination. Clients
// that send whole objects, such as kubectl and upstream's resource-manager, do not have this
// problem. So we first become the owner of the leftover in managedFields, and the same apply
// removes it.
//
// A map that becomes empty is the opposite case: all its fields leave the declaration, and the map
// stays as {}. Server-side apply then leaves null (sigs.k8s.io/structured-merge-diff,
// typed/remove.go), which definitions of custom resources reject. So the fields are removed first,
// and the same apply finds nothing of ours in the map.

// leftover is a group of fields of a live map that cannot coexist with the declared map.
type leftover struct {
	// holder is the path of the map, or of the list that has it under the name item.
	holder []string
	item   string
	fields []string
}

// rollsBy names the strategy field of workloads whose pods roll by default.
var rollsBy = map[schema.GroupKind]string{deploymentKind: "strategy", statefulSet: "updateStrategy"}

// podsAt is the path of the pod spec in workloads that can change.
var podsAt = map[schema.GroupKind][]string{
	deploymentKind:                      {"spec", "template", "spec"},
	statefulSet:                         {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:   {"spec", "jobTemplate", "spec", "template", "spec"},
	{Kind: "ReplicationController"}:     {"spec", "template", "spec"},
}

// leftovers returns the leftovers of a live object that no manager owns.
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

// emptied returns the maps that are declared as {} and whose live fields we alone own.
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

// removing removes the fields of leftovers from a live object. A field that the server defaults
// again at once stays without an owner, as under any declaration that leaves it open.
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

// in returns the map of an object, not a copy; nil if there is none.
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

// replaced returns a copy of an object with the map of another object.
func (l leftover) replaced(o, from *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	if m := l.in(out); m != nil {
		clear(m)
		maps.Copy(m, (&unstructured.Unstructured{Object: l.in(from)}).DeepCopy().Object)
	}
	return out
}

// withoutLeftovers retries a refused apply if leftovers may be the reason; otherwise it returns the
// error refused.
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

// owning returns the patch of managedFields that makes us the owner of leftovers.
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

// foreseeWithout predicts an object without its leftovers. It needs two dry runs: an apply with the
// live maps, and a replace of the answer with the declared maps.
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
