package admission

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// operation is one of a JSON patch (RFC 6902): add, which replaces what is there already, or
// remove.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
	steps []string
}

// additions compares an object as its Go type wrote it before and after something was filled in,
// and gives what has to be added to the object as it was sent. What the object says is never
// changed, and nothing that is in its type only (fields that are written although they are empty)
// gets into it.
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

// difference is the part of a value that was filled in.
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

// isEmpty tells whether a value says no more than one that is not there.
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

// between gives what makes one object of another. Lists only grow.
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

// apply adds to an object. Paths come from additions to the same object, so that all but their ends
// exist.
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
