package schemas

import (
	"slices"
	"strings"
)

// form is the shape of an object: a check for each field, applied if the field is set.
type form map[string]func(*configReport, tree)

// unknown reports a field that the plugin does not have.
func (r *configReport) unknown(field tree, known []string) {
	name := field.path[strings.LastIndexByte(field.path, '.')+1:]
	slices.Sort(known)
	if r.lenient {
		r.ignored.add(field, TypeForbidden, "the plugin knows no %q and ignores it%s; it reads %s", name, meant(name, known), quotedList(known))
		return
	}
	r.refused.add(field, TypeForbidden, "the plugin knows no %q%s; it reads %s", name, meant(name, known), quotedList(known))
}

func (r *configReport) wrong(field tree, want string) {
	r.refused.add(field, TypeTypeInvalid, "must be %s, not %v", want, typeName(field.value))
}

func typeName(value any) string {
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

func isList(field tree) bool {
	_, ok := field.value.([]any)
	return ok
}

// formObject checks that a value is an object with fields of the form only.
func formObject(f form) func(*configReport, tree) {
	return func(r *configReport, field tree) {
		if _, ok := field.value.(map[string]any); !ok {
			r.wrong(field, "an object")
			return
		}
		for _, name := range field.keys() {
			check, ok := f[name]
			switch value := field.at(name); {
			case ok && value.set():
				check(r, value)
				continue
			case ok:
				continue // null counts as unset
			}
			known := make([]string, 0, len(f))
			for name := range f {
				known = append(known, name)
			}
			r.unknown(field.at(name), known)
		}
	}
}

// formList checks a list, and its items with a function.
func formList(check func(*configReport, tree)) func(*configReport, tree) {
	return func(r *configReport, field tree) {
		if !isList(field) {
			r.wrong(field, "a list")
			return
		}
		for _, item := range field.items() {
			check(r, item)
		}
	}
}

// formAny accepts a value that other rules check.
func formAny(*configReport, tree) {}

func formText(r *configReport, field tree) {
	if _, ok := field.value.(string); !ok {
		r.wrong(field, "a text")
	}
}

func formSwitch(r *configReport, field tree) {
	if _, ok := field.value.(bool); !ok {
		r.wrong(field, "true or false")
	}
}

// formNumber checks a whole number in bounds.
func formNumber(low, high float64) func(*configReport, tree) {
	return func(r *configReport, field tree) {
		if n, ok := field.number(); !ok {
			r.wrong(field, "a number")
		} else if n != float64(int64(n)) {
			r.refused.add(field, TypeInvalid, "%v must be a whole number", field.value)
		} else if n < low || n > high {
			r.refused.add(field, TypeInvalid, "%v is out of range: it must be between %.0f and %.0f", field.value, low, high)
		}
	}
}

func formOneOf(allowed ...string) func(*configReport, tree) {
	return func(r *configReport, field tree) {
		if _, ok := field.value.(string); !ok {
			r.wrong(field, "a text")
			return
		}
		r.refused.oneOf(field, allowed...)
	}
}

// formNames checks a list of distinct names.
func formNames(what string, faults func(string) []string) func(*configReport, tree) {
	return func(r *configReport, field tree) {
		seen := map[string]string{}
		formList(func(r *configReport, item tree) {
			name, ok := item.value.(string)
			first, double := seen[name]
			switch {
			case !ok:
				r.wrong(item, what)
			case len(faults(name)) > 0:
				r.refused.add(item, TypeInvalid, "%q is not %s: %s", name, what, faults(name)[0])
			case double:
				r.refused.add(item, TypeDuplicate, "%q is listed already as %s", name, first)
			default:
				seen[name] = item.path
			}
		})(r, field)
	}
}
