package schemas

import (
	"slices"
	"strings"
)

// form is the shape of a value: fields of an object, each of which is looked at by its function. A
// value that is not set is not looked at.
type form map[string]func(*configReport, tree)

// unknown is said of a field that the plugin does not have.
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

// formObject holds fields of a form and no others.
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
				continue // null is nothing
			}
			known := make([]string, 0, len(f))
			for name := range f {
				known = append(known, name)
			}
			r.unknown(field.at(name), known)
		}
	}
}

// formList is a list with a function for its items.
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

// formAny is a value that others look at.
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

// formNumber is a whole number in bounds.
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

// formNames is a list in which each name is given once.
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
