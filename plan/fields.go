package plan

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// hiddenAnnotations may carry whole objects, secret values included, or say
// nothing about the object.
var hiddenAnnotations = map[string]bool{
	"kubectl.kubernetes.io/last-applied-configuration": true,
}

// serverFields are written by the API server and are no difference.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// Compare lists the fields that differ between two versions of an object. Status
// and server-set metadata do not count; values of Secrets are hidden.
func Compare(old, new map[string]any) []Field {
	var out []Field
	c := comparison{secret: isSecret(old) || isSecret(new), out: &out}
	c.value("", clean(old), clean(new))
	return out
}

func isSecret(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	return kind == "Secret" || kind == "InternalSecret"
}

func clean(obj map[string]any) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		if k == "status" {
			continue
		}
		out[k] = v
	}
	meta, ok := out["metadata"].(map[string]any)
	if !ok {
		return out
	}
	m := make(map[string]any, len(meta))
	for k, v := range meta {
		m[k] = v
	}
	for _, f := range serverFields {
		delete(m, f)
	}
	if annotations, ok := m["annotations"].(map[string]any); ok {
		kept := map[string]any{}
		for k, v := range annotations {
			if !hiddenAnnotations[k] {
				kept[k] = v
			}
		}
		m["annotations"] = kept
	}
	out["metadata"] = m
	return out
}

type comparison struct {
	secret bool
	out    *[]Field
}

func (c comparison) value(path string, old, new any) {
	if equal(old, new) {
		return
	}
	om, ok1 := old.(map[string]any)
	nm, ok2 := new.(map[string]any)
	if ok1 && ok2 || ok1 && new == nil || ok2 && old == nil {
		if path != "" && (len(om) == 0) != (len(nm) == 0) && !c.hides(path) {
			c.add(path, old, new)
			return
		}
		c.maps(path, om, nm)
		return
	}
	ol, ok1 := old.([]any)
	nl, ok2 := new.([]any)
	if ok1 && ok2 {
		c.lists(path, ol, nl)
		return
	}
	c.add(path, old, new)
}

func (c comparison) maps(path string, old, new map[string]any) {
	keys := map[string]bool{}
	for k := range old {
		keys[k] = true
	}
	for k := range new {
		keys[k] = true
	}
	sorted := make([]string, 0, len(keys))
	for k := range keys {
		sorted = append(sorted, k)
	}
	sort.Strings(sorted)
	for _, k := range sorted {
		c.value(join(path, k), old[k], new[k])
	}
}

// lists compares lists of objects by the field that names their items, other
// lists item by item.
func (c comparison) lists(path string, old, new []any) {
	key := listKey(old, new)
	if key == "" {
		if len(old) != len(new) || !allMaps(old) || !allMaps(new) {
			c.add(path, old, new)
			return
		}
		for i := range old {
			c.value(fmt.Sprintf("%s[%d]", path, i), old[i], new[i])
		}
		return
	}
	byKey := func(items []any) map[string]any {
		m := map[string]any{}
		for _, item := range items {
			m[fmt.Sprint(item.(map[string]any)[key])] = item
		}
		return m
	}
	o, n := byKey(old), byKey(new)
	var names []string
	for k := range o {
		names = append(names, k)
	}
	for k := range n {
		if _, ok := o[k]; !ok {
			names = append(names, k)
		}
	}
	sort.Strings(names)
	before := len(*c.out)
	for _, k := range names {
		c.value(fmt.Sprintf("%s[%s=%s]", path, key, k), o[k], n[k])
	}
	if len(*c.out) == before {
		// Same items in another order: the order of lists is a difference.
		c.add(path, keysOf(old, key), keysOf(new, key))
	}
}

func keysOf(items []any, key string) []any {
	var out []any
	for _, item := range items {
		out = append(out, item.(map[string]any)[key])
	}
	return out
}

func allMaps(items []any) bool {
	for _, item := range items {
		if _, ok := item.(map[string]any); !ok {
			return false
		}
	}
	return true
}

// listKey is the field that every item of both lists has, with distinct values.
func listKey(lists ...[]any) string {
candidates:
	for _, key := range []string{"name", "key", "type", "containerPort", "port", "ip"} {
		for _, items := range lists {
			seen := map[string]bool{}
			for _, item := range items {
				m, ok := item.(map[string]any)
				if !ok {
					return ""
				}
				v, ok := m[key]
				text := fmt.Sprint(v)
				if !ok || seen[text] {
					continue candidates
				}
				seen[text] = true
			}
		}
		return key
	}
	return ""
}

func (c comparison) hides(path string) bool {
	if !c.secret {
		return false
	}
	for _, prefix := range []string{"data", "stringData"} {
		if path == prefix || strings.HasPrefix(path, prefix+".") || strings.HasPrefix(path, prefix+"[") {
			return true
		}
	}
	// A Secret may be copied into an annotation by tools; its annotations stay hidden.
	return strings.HasPrefix(path, "metadata.annotations")
}

func (c comparison) add(path string, old, new any) {
	f := Field{Path: path, Old: old, New: new}
	if c.hides(path) {
		f = Field{Path: path, Hidden: true}
	}
	*c.out = append(*c.out, f)
}

func join(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return path + "[" + key + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// equal ignores the difference between absent, null and empty, and between the
// integer types of JSON decoders.
func equal(a, b any) bool {
	if empty(a) && empty(b) {
		return true
	}
	if na, ok := number(a); ok {
		nb, ok := number(b)
		return ok && na == nb
	}
	ma, ok1 := a.(map[string]any)
	mb, ok2 := b.(map[string]any)
	if ok1 && ok2 {
		for k := range ma {
			if !equal(ma[k], mb[k]) {
				return false
			}
		}
		for k := range mb {
			if _, ok := ma[k]; !ok && !empty(mb[k]) {
				return false
			}
		}
		return true
	}
	la, ok1 := a.([]any)
	lb, ok2 := b.([]any)
	if ok1 && ok2 {
		if len(la) != len(lb) {
			return false
		}
		for i := range la {
			if !equal(la[i], lb[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

func number(v any) (string, bool) {
	switch v.(type) {
	case int, int32, int64, uint64, float32, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}
