package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Compare lists the fields that differ between two versions of an object, in order of their paths; a nil
// version is an object that does not exist. Status and what only a server writes do not count. Values that are
// secret are not in the result, see redact.go; keys of Secrets are.
func Compare(old, new map[string]any) []Field {
	var out []Field
	at := location{}.enter(old).enter(new)
	c := comparison{&out}
	c.maps(at, clean(old), clean(new))
	return out
}

// serverFields are metadata that the API server writes.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// lastApplied is kubectl's copy of the object. It says nothing about the object and repeats its values.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// clean is a shallow copy without the fields that do not count.
func clean(obj map[string]any) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		if k != "status" {
			out[k] = v
		}
	}
	meta, ok := out["metadata"].(map[string]any)
	if ok {
		m := make(map[string]any, len(meta))
		for k, v := range meta {
			if !slices.Contains(serverFields, k) {
				m[k] = v
			}
		}
		if annotations, ok := m["annotations"].(map[string]any); ok {
			kept := make(map[string]any, len(annotations))
			for k, v := range annotations {
				if k != lastApplied {
					kept[k] = v
				}
			}
			m["annotations"] = kept
		}
		out["metadata"] = m
	}
	if isSecret(obj) {
		stringDataToData(out)
	}
	return out
}

// comparison collects differences.
type comparison struct{ out *[]Field }

func (c comparison) value(at location, old, new any) {
	if at.isEmpty(old) {
		old = nil
	}
	if at.isEmpty(new) {
		new = nil
	}
	if old == nil && new == nil {
		return
	}
	if at.sealed() {
		if !reflect.DeepEqual(old, new) {
			c.add(at, old, new)
		}
		return
	}
	oldMap, isOld := old.(map[string]any)
	newMap, isNew := new.(map[string]any)
	if isOld && isNew || at.keyByKey() && (isOld && new == nil || isNew && old == nil) {
		c.maps(at.enter(oldMap).enter(newMap), oldMap, newMap)
		return
	}
	oldList, isOld := old.([]any)
	newList, isNew := new.([]any)
	if isOld && isNew {
		c.lists(at, oldList, newList)
		return
	}
	if !at.sameScalar(old, new) {
		c.add(at, old, new)
	}
}

func (c comparison) maps(at location, old, new map[string]any) {
	keys := make([]string, 0, len(old)+len(new))
	for k := range old {
		keys = append(keys, k)
	}
	for k := range new {
		if _, both := old[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		c.value(at.child(k, old, new), old[k], new[k])
	}
}

// differ tells whether two values differ, by the same rules.
func (c comparison) differ(at location, old, new any) bool {
	var found []Field
	comparison{&found}.value(at, old, new)
	return len(found) > 0
}

// lists compares items by the fields that name them, other lists as a whole or, where they are objects and as
// many as before, item by item. The order of a list is a difference.
func (c comparison) lists(at location, old, new []any) {
	key := listKey(old, new)
	if key == nil {
		c.positions(at, old, new)
		return
	}
	before, after := keyed(old, key), keyed(new, key)
	names := slices.Concat(before.names, after.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		o, wasThere := before.items[name]
		n, isThere := after.items[name]
		inner := at.item("[" + name + "]")
		if wasThere && isThere {
			c.value(inner, o, n)
		} else {
			c.add(inner, o, n)
		}
	}
	if o, n := before.common(after), after.common(before); !slices.Equal(o, n) {
		c.add(at.item(" (order)"), asAny(o), asAny(n))
	}
}

func (c comparison) positions(at location, old, new []any) {
	if len(old) == len(new) && allMaps(old) && allMaps(new) {
		for i := range old {
			c.value(at.item(fmt.Sprintf("[%d]", i)), old[i], new[i])
		}
		return
	}
	same := len(old) == len(new)
	for i := 0; same && i < len(old); i++ {
		same = !c.differ(at.item(fmt.Sprintf("[%d]", i)), old[i], new[i])
	}
	if !same {
		c.add(at, old, new)
	}
}

func (c comparison) add(at location, old, new any) { *c.out = append(*c.out, at.field(old, new)) }

// listKeys are fields that name the items of lists in Kubernetes' APIs, tried in this order.
var listKeys = [][]string{{"name"}, {"mountPath"}, {"containerPort"}, {"containerPort", "protocol"}, {"port"},
	{"port", "protocol"}, {"key"}, {"type"}, {"ip"}, {"topologyKey"}}

// listKey is the first that every item of all lists has, with distinct values in each list.
func listKey(lists ...[]any) []string {
	for _, list := range lists {
		if !allMaps(list) {
			return nil
		}
	}
candidates:
	for _, key := range listKeys {
		for _, list := range lists {
			seen := map[string]bool{}
			for _, item := range list {
				name, ok := nameOf(item.(map[string]any), key)
				if !ok || seen[name] {
					continue candidates
				}
				seen[name] = true
			}
		}
		return key
	}
	return nil
}

// nameOf is the name of a list item, "name=app" or "port=53,protocol=UDP".
func nameOf(item map[string]any, key []string) (string, bool) {
	parts := make([]string, 0, len(key))
	for _, k := range key {
		v, ok := item[k]
		if !ok && k == "protocol" {
			v, ok = "TCP", true // the default
		}
		switch v.(type) {
		case nil, map[string]any, []any:
			return "", false
		}
		if !ok {
			return "", false
		}
		parts = append(parts, fmt.Sprintf("%s=%v", k, v))
	}
	return strings.Join(parts, ","), true
}

// keyedList is a list by the names of its items.
type keyedList struct {
	names []string
	items map[string]any
}

func keyed(list []any, key []string) keyedList {
	out := keyedList{items: map[string]any{}}
	for _, item := range list {
		name, _ := nameOf(item.(map[string]any), key)
		out.names, out.items[name] = append(out.names, name), item
	}
	return out
}

// common are the names that another list has too, in the order of this one.
func (l keyedList) common(other keyedList) []string {
	var out []string
	for _, name := range l.names {
		if _, ok := other.items[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func asAny(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

func allMaps(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		_, ok := item.(map[string]any)
		return !ok
	})
}
