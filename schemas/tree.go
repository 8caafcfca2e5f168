package schemas

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// tree is a value inside an object with the path of its field, for rules in Go. An unset value is
// nil, and so is everything below it.
type tree struct {
	path  string
	value any
	// written is the path in the object if path is upstream's name of the field; otherwise "".
	written string
}

// at descends by the names of fields.
func (t tree) at(names ...string) tree {
	for _, name := range names {
		fields, _ := t.value.(map[string]any)
		t = t.child("."+name, fields[name])
	}
	return t
}

// key returns the entry of a map, whose path has brackets.
func (t tree) key(name string) tree {
	fields, _ := t.value.(map[string]any)
	return t.child("["+name+"]", fields[name])
}

// child descends by one step, which includes its dot or brackets.
func (t tree) child(step string, value any) tree {
	c := tree{path: strings.TrimPrefix(t.path+step, "."), value: value}
	if t.written != "" {
		c.written = t.written + step
	}
	return c
}

// as returns the same value under another field name: upstream reports some fields by the names in
// its own code.
func (t tree) as(path string) tree {
	return tree{path: path, value: t.value, written: cmp.Or(t.written, t.path)}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (t tree) set() bool { return t.value != nil }

// keys returns the names of the fields of a map, sorted.
func (t tree) keys() []string {
	fields, _ := t.value.(map[string]any)
	return slices.Sorted(maps.Keys(fields))
}

// items returns the items of a list.
func (t tree) items() []tree {
	list, _ := t.value.([]any)
	items := make([]tree, len(list))
	for i, item := range list {
		items[i] = t.child("["+strconv.Itoa(i)+"]", item)
	}
	return items
}

// text returns a text, or "" for any other value.
func (t tree) text() string {
	text, _ := t.value.(string)
	return text
}

func (t tree) texts() []string {
	var texts []string
	for _, item := range t.items() {
		texts = append(texts, item.text())
	}
	return texts
}

// is reports whether the value is true.
func (t tree) is() bool {
	value, _ := t.value.(bool)
	return value
}

// number returns a number, and false for any other value.
func (t tree) number() (float64, bool) {
	switch v := t.value.(type) {
	case int:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// count returns a whole number, 0 for any other value.
func (t tree) count() int {
	number, _ := t.number()
	if math.Abs(number) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(number)
}

func (t tree) duration() (time.Duration, bool) {
	text, ok := t.value.(string)
	if !ok {
		return 0, false
	}
	duration, err := time.ParseDuration(text)
	return duration, err == nil
}

func (t tree) quantity() (resource.Quantity, bool) {
	text, ok := t.value.(string)
	if !ok {
		number, isNumber := t.number()
		if !isNumber {
			return resource.Quantity{}, false
		}
		text = strconv.FormatFloat(number, 'f', -1, 64)
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}

// report collects findings.
type report struct{ findings []finding }

func (r *report) add(at tree, typ Type, format string, args ...any) {
	r.findings = append(r.findings, finding{path: at.path, at: at.written, typ: typ, message: fmt.Sprintf(format, args...)})
}

// notNegative checks numbers that may not be below zero.
func (r *report) notNegative(fields ...tree) {
	for _, field := range fields {
		if number, ok := field.number(); ok && number < 0 {
			r.add(field, TypeInvalid, "%v is negative; it must be 0 or more", field.value)
		}
	}
}

// within checks that a number lies between two others.
func (r *report) within(field tree, low, high float64) {
	if number, ok := field.number(); ok && (number < low || number > high) {
		r.add(field, TypeInvalid, "%v is out of range: it must be between %v and %v", field.value, low, high)
	}
}

// atLeast checks that a number is not below another.
func (r *report) atLeast(field tree, low float64) {
	if number, ok := field.number(); ok && number < low {
		r.add(field, TypeInvalid, "%v is too small: it must be %v or more", field.value, low)
	}
}

// durations checks that durations are not below least.
func (r *report) durations(least time.Duration, fields ...tree) {
	for _, field := range fields {
		if duration, ok := field.duration(); ok && duration < least {
			r.add(field, TypeInvalid, "%s is too short: it must be %s or longer", field.text(), least)
		}
	}
}

// quantities checks that quantities are not negative.
func (r *report) quantities(fields ...tree) {
	for _, field := range fields {
		if quantity, ok := field.quantity(); ok && quantity.Sign() < 0 {
			r.add(field, TypeInvalid, "%v is negative; it must be 0 or more", field.value)
		}
	}
}

// oneOf checks a text that has few possible values, and suggests the most likely one.
func (r *report) oneOf(field tree, allowed ...string) {
	if field.set() && !slices.Contains(allowed, field.text()) {
		hint := ""
		if better := suggest.Word(field.text(), allowed); better != "" {
			hint = fmt.Sprintf("; did you mean %q?", better)
		}
		r.add(field, TypeNotSupported, "%q is not supported, but one of %s%s", field.text(), quotedList(allowed), hint)
	}
}

// quotedList writes words as "a", "b", "c".
func quotedList(words []string) string {
	text := ""
	for i, word := range words {
		if i > 0 {
			text += ", "
		}
		text += strconv.Quote(word)
	}
	return text
}
