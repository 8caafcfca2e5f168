// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// patchOperation is a JSON patch operation (RFC 6902): remove, or add, which replaces an existing
// value.
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
	steps []string
}

// additionsTo returns the additions to an object as it was sent. It compares the object before and
// after fields were set, as the Go type encodes it. It changes no value that was sent, and does not
// add empty fields that only the Go type writes.
func additionsTo(sent, before, after map[string]any) []patchOperation {
	var ops []patchOperation
	addMissingFields(&ops, nil, sent, before, after)
	return ops
}

func addMissingFields(ops *[]patchOperation, path []string, sent, before, after map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		here := append(slices.Clone(path), name)
		switch {
		case reflect.DeepEqual(before[name], after[name]):
		case isEmpty(sent[name]):
			appendAdd(ops, here, addedPart(before[name], after[name]))
		default:
			addNested(ops, here, sent[name], before[name], after[name])
		}
	}
}

// addNested adds to a value that was sent; a value that is neither an object nor a list stays.
func addNested(ops *[]patchOperation, path []string, sent, before, after any) {
	switch sent := sent.(type) {
	case map[string]any:
		if filled, ok := after.(map[string]any); ok {
			was, _ := before.(map[string]any)
			addMissingFields(ops, path, sent, was, filled)
		}
	case []any:
		was, _ := before.([]any)
		filled, ok := after.([]any)
		if !ok || len(was) != len(sent) {
			return
		}
		for i := range filled {
			if i >= len(sent) {
				appendAdd(ops, append(slices.Clone(path), "-"), filled[i])
			} else if !reflect.DeepEqual(was[i], filled[i]) {
				addNested(ops, append(slices.Clone(path), strconv.Itoa(i)), sent[i], was[i], filled[i])
			}
		}
	}
}

// addedPart returns the added part of a value.
func addedPart(before, after any) any {
	was, ok := before.(map[string]any)
	filled, both := after.(map[string]any)
	if !ok || !both {
		return after
	}
	result := map[string]any{}
	for name, value := range filled {
		if !reflect.DeepEqual(was[name], value) {
			result[name] = addedPart(was[name], value)
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

func appendAdd(ops *[]patchOperation, path []string, value any) {
	*ops = append(*ops, patchOperation{Op: "add", Path: jsonPointer(path), Value: value, steps: path})
}

func jsonPointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, step := range path {
		pointer.WriteString("/" + escape.Replace(step))
	}
	return pointer.String()
}

// patchBetween returns the operations that change one object to another. Lists only grow.
func patchBetween(from, to map[string]any) []patchOperation {
	var ops []patchOperation
	appendFieldChanges(&ops, nil, from, to)
	return ops
}

func appendFieldChanges(ops *[]patchOperation, path []string, from, to map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[name]; !stays {
			*ops = append(*ops, patchOperation{Op: "remove", Path: jsonPointer(append(slices.Clone(path), name))})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		here := append(slices.Clone(path), name)
		was, there := from[name]
		if !there {
			appendAdd(ops, here, to[name])
			continue
		}
		appendValueChanges(ops, here, was, to[name])
	}
}

func appendValueChanges(ops *[]patchOperation, path []string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch is := to.(type) {
	case map[string]any:
		if was, ok := from.(map[string]any); ok {
			appendFieldChanges(ops, path, was, is)
			return
		}
	case []any:
		was, ok := from.([]any)
		if !ok || len(was) > len(is) {
			break
		}
		for i := range is {
			if i < len(was) {
				appendValueChanges(ops, append(slices.Clone(path), strconv.Itoa(i)), was[i], is[i])
			} else {
				appendAdd(ops, append(slices.Clone(path), "-"), is[i])
			}
		}
		return
	}
	appendAdd(ops, path, to)
}

// applyTo adds to an object. Paths come from additions to the same object, so all but their last
// elements exist.
func (o patchOperation) applyTo(object map[string]any) {
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
