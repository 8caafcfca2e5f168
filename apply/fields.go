package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noise are fields that a server changes by itself; they say nothing about a change.
var noise = []string{"metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "metadata.uid",
	"metadata.creationTimestamp", "metadata.selfLink", "status"}

// difference lists the fields in which two states of an object differ, in order of their paths.
func difference(old, new *unstructured.Unstructured) []FieldChange {
	d := differ{hide: groupKindOf(new) == secretKind}
	d.compare("", old.Object, new.Object)
	slices.SortFunc(d.out, func(a, b FieldChange) int { return strings.Compare(a.Path, b.Path) })
	return d.out
}

type differ struct {
	hide bool
	out  []FieldChange
}

func (d *differ) compare(path string, old, new any) {
	if slices.Contains(noise, path) || reflect.DeepEqual(old, new) {
		return
	}
	oldMap, isOld := old.(map[string]any)
	newMap, isNew := new.(map[string]any)
	if isOld && isNew {
		for k := range oldMap {
			d.compare(under(path, k), oldMap[k], newMap[k])
		}
		for k, v := range newMap {
			if _, both := oldMap[k]; !both {
				d.compare(under(path, k), nil, v)
			}
		}
		return
	}
	// A Secret's data that appears or vanishes as a whole is still told key by key, without values.
	if d.hide && (path == "data" || path == "stringData") && (isOld || isNew) {
		for k := range oldMap {
			d.add(under(path, k), old, nil)
		}
		for k := range newMap {
			d.add(under(path, k), nil, new)
		}
		return
	}
	oldList, isOld := old.([]any)
	newList, isNew := new.([]any)
	if isOld && isNew && d.compareLists(path, oldList, newList) {
		return
	}
	d.add(path, old, new)
}

// compareLists compares lists item by item, by name where the items have unique ones. It declines when that
// does not make the change clearer.
func (d *differ) compareLists(path string, old, new []any) bool {
	before, ok := byName(old)
	after, ok2 := byName(new)
	if ok && ok2 {
		for name, item := range before {
			d.compare(fmt.Sprintf("%s[name=%q]", path, name), item, after[name])
		}
		for name, item := range after {
			if _, both := before[name]; !both {
				d.compare(fmt.Sprintf("%s[name=%q]", path, name), nil, item)
			}
		}
		return len(d.out) > 0
	}
	if len(old) != len(new) {
		return false
	}
	for i := range old {
		d.compare(fmt.Sprintf("%s[%d]", path, i), old[i], new[i])
	}
	return true
}

func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		name, ok := m["name"].(string)
		if !ok || out[name] != nil {
			return nil, false
		}
		out[name] = item
	}
	return out, true
}

func (d *differ) add(path string, old, new any) {
	d.out = append(d.out, hidden(FieldChange{Path: path, Old: old, New: new}, d.hide))
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// hidden withholds the values of a Secret, whatever the field is, except labels and the kind of Secret; and of
// kubectl's copy of the object, which repeats them.
func hidden(f FieldChange, secret bool) FieldChange {
	path := strings.ReplaceAll(strings.TrimPrefix(f.Path, "."), `"`, "")
	visible := strings.HasPrefix(path, "metadata.labels") || path == "type" || path == "immutable"
	if strings.Contains(path, lastApplied) || secret && !visible {
		f.Old, f.New, f.Hidden = nil, nil, true
	}
	if m, ok := f.Old.(map[string]any); ok && m[lastApplied] != nil {
		f.Old, f.Hidden = nil, true
	}
	if m, ok := f.New.(map[string]any); ok && m[lastApplied] != nil {
		f.New, f.Hidden = nil, true
	}
	return f
}

// under appends a key to a path; keys that are no plain names are quoted.
func under(path, k string) string {
	if strings.ContainsAny(k, "./ []\"") {
		return path + "[" + strconv.Quote(k) + "]"
	}
	if path == "" {
		return k
	}
	return path + "." + k
}

// named are the changes of fields given by the paths of a server's message.
func named(want, live *unstructured.Unstructured, paths []string) []FieldChange {
	var out []FieldChange
	for _, path := range paths {
		parts := strings.Split(path, ".")
		old, _, _ := unstructured.NestedFieldNoCopy(live.Object, parts...)
		new, _, _ := unstructured.NestedFieldNoCopy(want.Object, parts...)
		out = append(out, hidden(FieldChange{Path: path, Old: old, New: new}, groupKindOf(want) == secretKind))
	}
	return out
}
