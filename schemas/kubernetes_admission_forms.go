// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"
)

// fieldChecks is the shape of an object: a check for each field, applied if the field is set.
type fieldChecks map[string]func(*pluginReport, fieldValue)

// addUnknownField reports a field that the plugin does not have.
func (r *pluginReport) addUnknownField(field fieldValue, known []string) {
	name := field.path[strings.LastIndexByte(field.path, '.')+1:]
	slices.Sort(known)
	if r.lenient {
		r.ignored.add(field, TypeForbidden, "the plugin ignores the unknown field %q%s; it reads %s", name, suggestionHint(name, known), quotedList(known))
		return
	}
	r.rejected.add(field, TypeForbidden, "the plugin does not know the field %q%s; it reads %s", name, suggestionHint(name, known), quotedList(known))
}

func (r *pluginReport) addTypeError(field fieldValue, want string) {
	r.rejected.add(field, TypeTypeInvalid, "must be %s, not %v", want, describeType(field.value))
}

func describeType(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a text"
	case bool:
		return "true or false"
	}
	return "a number"
}

func isList(field fieldValue) bool {
	_, ok := field.value.([]any)
	return ok
}

// objectCheck checks that a value is an object that has only fields of the form.
func objectCheck(f fieldChecks) func(*pluginReport, fieldValue) {
	return func(r *pluginReport, field fieldValue) {
		if _, ok := field.value.(map[string]any); !ok {
			r.addTypeError(field, "an object")
			return
		}
		for _, name := range field.keys() {
			check, ok := f[name]
			switch value := field.lookup(name); {
			case ok && value.isSet():
				check(r, value)
				continue
			case ok:
				continue // null counts as unset
			}
			known := make([]string, 0, len(f))
			for name := range f {
				known = append(known, name)
			}
			r.addUnknownField(field.lookup(name), known)
		}
	}
}

// listCheck checks a list, and its items with a function.
func listCheck(check func(*pluginReport, fieldValue)) func(*pluginReport, fieldValue) {
	return func(r *pluginReport, field fieldValue) {
		if !isList(field) {
			r.addTypeError(field, "a list")
			return
		}
		for _, item := range field.items() {
			check(r, item)
		}
	}
}

// acceptAny accepts a value that other rules check.
func acceptAny(*pluginReport, fieldValue) {}

func checkTextValue(r *pluginReport, field fieldValue) {
	if _, ok := field.value.(string); !ok {
		r.addTypeError(field, "a text")
	}
}

func checkBooleanValue(r *pluginReport, field fieldValue) {
	if _, ok := field.value.(bool); !ok {
		r.addTypeError(field, "true or false")
	}
}

// numberCheck checks a whole number in bounds.
func numberCheck(low, high float64) func(*pluginReport, fieldValue) {
	return func(r *pluginReport, field fieldValue) {
		if n, ok := field.number(); !ok {
			r.addTypeError(field, "a number")
		} else if n != float64(int64(n)) {
			r.rejected.add(field, TypeInvalid, "%v must be a whole number", field.value)
		} else if n < low || n > high {
			r.rejected.add(field, TypeInvalid, "%v is out of range: it must be between %.0f and %.0f", field.value, low, high)
		}
	}
}

func oneOfCheck(allowed ...string) func(*pluginReport, fieldValue) {
	return func(r *pluginReport, field fieldValue) {
		if _, ok := field.value.(string); !ok {
			r.addTypeError(field, "a text")
			return
		}
		r.rejected.requireOneOf(field, allowed...)
	}
}

// distinctNamesCheck checks a list of distinct names.
func distinctNamesCheck(what string, faults func(string) []string) func(*pluginReport, fieldValue) {
	return func(r *pluginReport, field fieldValue) {
		seen := map[string]string{}
		listCheck(func(r *pluginReport, item fieldValue) {
			name, ok := item.value.(string)
			first, double := seen[name]
			switch {
			case !ok:
				r.addTypeError(item, what)
			case len(faults(name)) > 0:
				r.rejected.add(item, TypeInvalid, "%q is not %s: %s", name, what, faults(name)[0])
			case double:
				r.rejected.add(item, TypeDuplicate, "%q is already listed as %s", name, first)
			default:
				seen[name] = item.path
			}
		})(r, field)
	}
}
