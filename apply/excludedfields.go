// SPDX-License-Identifier: Apache-2.0

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
// a Deployment or a volume's emptyDir. No one owns the default, so an apply leaves it, even if the
// declaration now has a field that excludes it. The server then rejects the combination. Clients
// that send whole objects, such as kubectl and upstream's resource-manager, do not have this
// problem. So we first become the owner of the leftover in managedFields, and the same apply
// removes it.
//
// A map that becomes empty is the opposite case: all its fields leave the declaration, and the map
// stays as {}. Server-side apply then leaves null (sigs.k8s.io/structured-merge-diff,
// typed/remove.go), which definitions of custom resources reject. So the fields are removed first,
// and the same apply finds nothing of ours in the map.

// staleMapFields is a group of fields of a live map that cannot coexist with the declared map.
type staleMapFields struct {
	// mapPath is the path of the map, or of the list that has it under the name item.
	mapPath []string
	item    string
	fields  []string
}

// updateStrategyFields names the strategy field of workloads whose pods roll by default.
var updateStrategyFields = map[schema.GroupKind]string{deploymentKind: "strategy", statefulSet: "updateStrategy"}

// podSpecPaths is the path of the pod spec in workloads that can change.
var podSpecPaths = map[schema.GroupKind][]string{
	deploymentKind:                      {"spec", "template", "spec"},
	statefulSet:                         {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:   {"spec", "jobTemplate", "spec", "template", "spec"},
	{Kind: "ReplicationController"}:     {"spec", "template", "spec"},
}

// findExcludedDefaults returns the leftovers of a live object that no manager owns.
func findExcludedDefaults(send, live *unstructured.Unstructured) []staleMapFields {
	gk := groupKindOf(send)
	var found []staleMapFields
	if field, rolls := updateStrategyFields[gk]; rolls {
		l := staleMapFields{mapPath: []string{"spec", field}, fields: []string{"rollingUpdate"}}
		if declared := l.mapIn(send); declared["type"] != nil && declared["type"] != "RollingUpdate" && declared["rollingUpdate"] == nil && l.mapIn(live)["rollingUpdate"] != nil {
			found = append(found, l)
		}
	}
	if pods := podSpecPaths[gk]; pods != nil {
		volumes := append(slices.Clone(pods), "volumes")
		list, _, _ := unstructured.NestedSlice(send.Object, volumes...)
		for _, v := range list {
			declared, _ := v.(map[string]any)
			name, _ := declared["name"].(string)
			l := staleMapFields{mapPath: volumes, item: name}
			for field := range l.mapIn(live) {
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
	return slices.DeleteFunc(found, func(l staleMapFields) bool {
		return slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool {
			set := parseFields(m)
			return set == nil && m.FieldsV1 != nil || set != nil && slices.ContainsFunc(l.paths(), func(p fieldpath.Path) bool { return hasAnyBelow(set, p) })
		})
	})
}

// findEmptiedMaps returns the maps that are declared as {} and whose live fields we alone own.
func (r *setRun) findEmptiedMaps(send, live *unstructured.Unstructured) []staleMapFields {
	var ours, others []*fieldpath.Set
	for _, m := range managersOf(live) {
		set := parseFields(m)
		switch {
		case set == nil && m.FieldsV1 != nil:
			return nil
		case set == nil:
		case r.isOwnManager(m):
			ours = append(ours, set)
		default:
			others = append(others, set)
		}
	}
	has := func(sets []*fieldpath.Set, p fieldpath.Path) bool {
		return slices.ContainsFunc(sets, func(set *fieldpath.Set) bool { return hasAnyBelow(set, p) })
	}
	var found []staleMapFields
	var look func(at []string, declared, lives map[string]any)
	look = func(at []string, declared, lives map[string]any) {
		for _, field := range slices.Sorted(maps.Keys(declared)) {
			want, isMap := declared[field].(map[string]any)
			have, _ := lives[field].(map[string]any)
			l := staleMapFields{mapPath: append(slices.Clone(at), field), fields: slices.Sorted(maps.Keys(have))}
			switch {
			case !isMap || len(have) == 0:
			case len(want) > 0:
				look(l.mapPath, want, have)
			case !slices.ContainsFunc(l.paths(), func(p fieldpath.Path) bool { return !has(ours, p) || has(others, p) }):
				found = append(found, l)
			}
		}
	}
	look(nil, send.Object, live.Object)
	return found
}

// removeStaleFields removes the fields of leftovers from a live object. A field that the server
// defaults again at once stays without an owner, as under any declaration that leaves it open.
func (r *setRun) removeStaleFields(ctx context.Context, live *unstructured.Unstructured, left []staleMapFields) error {
	ops := []any{map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}}
	gone := fieldpath.NewSet()
	for _, l := range left {
		for i, path := range l.paths() {
			at := ""
			for _, name := range append(slices.Clone(l.mapPath), l.fields[i]) {
				at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			}
			ops = append(ops, map[string]any{"op": "remove", "path": at})
			gone.Insert(path)
		}
	}
	managers := managersOf(live)
	for i, m := range managers {
		if set := parseFields(m); r.isOwnManager(m) && set != nil {
			text, err := set.Difference(gone).RecursiveDifference(gone).ToJSON()
			if err != nil {
				return valueFreeErrorf("the field managers of %s cannot be read", RefOf(live))
			}
			managers[i].FieldsV1 = metav1.NewFieldsV1(string(text))
		}
	}
	ops = append(ops, map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": managers})
	body, err := json.Marshal(ops)
	if err == nil {
		_, err = r.cluster.patchRef(ctx, RefOf(live), types.JSONPatchType, body, r.set.FieldManager, "")
	}
	return err
}

// mapIn returns the map of an object, not a copy, or nil if there is none.
func (l staleMapFields) mapIn(o *unstructured.Unstructured) map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, l.mapPath...)
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

func (l staleMapFields) paths() []fieldpath.Path {
	var out []fieldpath.Path
	for _, field := range l.fields {
		var parts []any
		for _, name := range l.mapPath {
			parts = append(parts, name)
		}
		if l.item != "" {
			parts = append(parts, fieldpath.KeyByFields("name", l.item))
		}
		out = append(out, fieldpath.MakePathOrDie(append(parts, field)...))
	}
	return out
}

// withMapFrom returns a copy of an object with the map of another object.
func (l staleMapFields) withMapFrom(o, from *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	if m := l.mapIn(out); m != nil {
		clear(m)
		maps.Copy(m, (&unstructured.Unstructured{Object: l.mapIn(from)}).DeepCopy().Object)
	}
	return out
}

// retryWithoutStaleFields retries a refused apply if leftovers may be the reason; otherwise it
// returns the error refused.
func (r *setRun) retryWithoutStaleFields(ctx context.Context, w applyRequest, opts patchOptions, refused error) (*unstructured.Unstructured, bool, error) {
	for range 3 { // others may write meanwhile
		live, err := r.cluster.GetLive(ctx, w.ref)
		if err != nil || opts.uid != "" && live.GetUID() != opts.uid || !slices.ContainsFunc(managersOf(live), r.isOwnManager) {
			return nil, false, refused
		}
		left, empty := findExcludedDefaults(w.toSend, live), r.findEmptiedMaps(w.toSend, live)
		if len(left)+len(empty) == 0 {
			return nil, false, refused
		}
		if opts.dry {
			answer, err := r.dryRunWithoutStaleFields(ctx, w, live, append(left, empty...), opts)
			return answer, false, err
		}
		if len(left) > 0 {
			live, err = r.patchManagers(ctx, live, r.ownershipPatch(live, left))
		}
		if err == nil && len(empty) > 0 {
			err = r.removeStaleFields(ctx, live, empty)
		}
		if err == nil {
			return r.cluster.patchApply(ctx, w.toSend, opts)
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return nil, false, err
		}
	}
	return nil, false, refused
}

// ownershipPatch returns the patch of managedFields that makes us the owner of leftovers.
func (r *setRun) ownershipPatch(live *unstructured.Unstructured, left []staleMapFields) []ssa.JSONPatch {
	managers := managersOf(live)
	for i, m := range managers {
		set := parseFields(m)
		if !r.isOwnManager(m) || set == nil {
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

// dryRunWithoutStaleFields predicts an object without its leftovers. It needs two dry runs: an
// apply with the live maps, and a replace of the answer with the declared maps.
func (r *setRun) dryRunWithoutStaleFields(ctx context.Context, w applyRequest, live *unstructured.Unstructured, left []staleMapFields, opts patchOptions) (*unstructured.Unstructured, error) {
	trial := w.toSend
	for _, l := range left {
		trial = l.withMapFrom(trial, live)
	}
	answer, _, err := r.cluster.patchApply(ctx, trial, opts)
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		answer = l.withMapFrom(answer, w.toSend)
	}
	return r.withServerDefaults(ctx, w.ref, answer)
}
