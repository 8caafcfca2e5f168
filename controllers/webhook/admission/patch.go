package admission

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// operation is a JSON patch operation (RFC 6902): remove, or add, which replaces an existing value.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
	steps []string
}

// additions returns the additions to an object as it was sent. It compares the object before and
// after fields were set, as the Go type encodes it. It changes no value that was sent, and does not
// add empty fields that only the Go type writes.
func additions(sent, before, after map[string]any) []operation {
	var ops []operation
	addFields(&ops, nil, sent, before, after)
	return ops
}

func addFields(ops *[]operation, path []string, sent, before, after map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		here := append(slices.Clone(path), name)
		switch {
		case reflect.DeepEqual(before[name], after[name]):
		case isEmpty(sent[name]):
			add(ops, here, difference(before[name], after[name]))
		default:
			addInside(ops, here, sent[name], before[name], after[name])
		}
	}
}

// addInside adds to a value that was sent; a value that is neither an object nor a list stays.
func addInside(ops *[]operation, path []string, sent, before, after any) {
	switch sent := sent.(type) {
	case map[string]any:
		if filled, ok := after.(map[string]any); ok {
			was, _ := before.(map[string]any)
			addFields(ops, path, sent, was, filled)
		}
	case []any:
		was, _ := before.([]any)
		filled, ok := after.([]any)
		if !ok || len(was) != len(sent) {
			return
		}
		for i := range filled {
			if i >= len(sent) {
				add(ops, append(slices.Clone(path), "-"), filled[i])
			} else if !reflect.DeepEqual(was[i], filled[i]) {
				addInside(ops, append(slices.Clone(path), strconv.Itoa(i)), sent[i], was[i], filled[i])
			}
		}
	}
}

// difference returns the added part of a value.
func difference(before, after any) any {
	was, ok := before.(map[string]any)
	filled, both := after.(map[string]any)
	if !ok || !both {
		return after
	}
	result := map[string]any{}
	for name, value := range filled {
		if !reflect.DeepEqual(was[name], value) {
			result[name] = difference(was[name], value)
		}
	}
	return result
}

// isEmpty reports whether a value means the same as a missing one.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func add(ops *[]operation, path []string, value any) {
	*ops = append(*ops, operation{Op: "add", Path: pointer(path), Value: value, steps: path})
}

func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, step := range path {
		pointer.WriteString("/" + escape.Replace(step))
	}
	return pointer.String()
}

// between returns the operations that change one object to another. Lists only grow.
func between(from, to map[string]any) []operation {
	var ops []operation
	fieldsBetween(&ops, nil, from, to)
	return ops
}

func fieldsBetween(ops *[]operation, path []string, from, to map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[name]; !stays {
			*ops = append(*ops, operation{Op: "remove", Path: pointer(append(slices.Clone(path), name))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		here := append(slices.Clone(path), name)
		was, there := from[name]
		if !there {
			add(ops, here, to[name])
			continue
		}
		valuesBetween(ops, here, was, to[name])
	}
}

func valuesBetween(ops *[]operation, path []string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch is := to.(type) {
	case map[string]any:
		if was, ok := from.(map[string]any); ok {
			fieldsBetween(ops, path, was, is)
			return
		}
	case []any:
		was, ok := from.([]any)
		if !ok || len(was) > len(is) {
			break
		}
		for i := range is {
			if i < len(was) {
				valuesBetween(ops, append(slices.Clone(path), strconv.Itoa(i)), was[i], is[i])
			} else {
				add(ops, append(slices.Clone(path), "-"), is[i])
			}
		}
		return
	}
	add(ops, path, to)
}

// apply adds to an object. Paths come from additions to the same object, so that all but their last
// elements exist.
func (o operation) apply(object map[string]any) {
	value := runtime.DeepCopyJSONValue(o.Value)
	var at any = object
	set := func(any) {}
	for i, step := range o.steps {
		last := i == len(o.steps)-1
		switch current := at.(type) {
		case map[string]any:
			if last {
				current[step] = value
				return
			}
			set = func(v any) { current[step] = v }
			at = current[step]
		case []any:
			index, err := strconv.Atoi(step)
			if last && err != nil {
				set(append(current, value))
				return
			}
			set = func(v any) { current[index] = v }
			at = current[index]
		}
	}
}
