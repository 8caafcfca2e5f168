// SPDX-License-Identifier: Apache-2.0

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

// fieldValue is a value inside an object with the path of its field, for rules in Go. An unset
// value is nil, and so is everything below it.
type fieldValue struct {
	path  string
	value any
	// documentPath is the path in the object if path is upstream's name of the field; otherwise "".
	documentPath string
}

// lookup descends by the names of fields.
func (t fieldValue) lookup(names ...string) fieldValue {
	for _, name := range names {
		fields, _ := t.value.(map[string]any)
		t = t.child("."+name, fields[name])
	}
	return t
}

// entry returns the entry of a map, whose path has brackets.
func (t fieldValue) entry(name string) fieldValue {
	fields, _ := t.value.(map[string]any)
	return t.child("["+name+"]", fields[name])
}

// child descends by one step, which includes its dot or brackets.
func (t fieldValue) child(step string, value any) fieldValue {
	c := fieldValue{path: strings.TrimPrefix(t.path+step, "."), value: value}
	if t.documentPath != "" {
		c.documentPath = t.documentPath + step
	}
	return c
}

// withPath returns the same value under another field name: upstream reports some fields by the
// names in its own code.
func (t fieldValue) withPath(path string) fieldValue {
	return fieldValue{path: path, value: t.value, documentPath: cmp.Or(t.documentPath, t.path)}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (t fieldValue) isSet() bool { return t.value != nil }

// keys returns the names of the fields of a map, sorted.
func (t fieldValue) keys() []string {
	fields, _ := t.value.(map[string]any)
	return slices.Sorted(maps.Keys(fields))
}

// items returns the items of a list.
func (t fieldValue) items() []fieldValue {
	list, _ := t.value.([]any)
	items := make([]fieldValue, len(list))
	for i, item := range list {
		items[i] = t.child("["+strconv.Itoa(i)+"]", item)
	}
	return items
}

// text returns a text, or "" for any other value.
func (t fieldValue) text() string {
	text, _ := t.value.(string)
	return text
}

func (t fieldValue) texts() []string {
	var texts []string
	for _, item := range t.items() {
		texts = append(texts, item.text())
	}
	return texts
}

// isTrue reports whether the value is true.
func (t fieldValue) isTrue() bool {
	value, _ := t.value.(bool)
	return value
}

// number returns a number, and false for any other value.
func (t fieldValue) number() (float64, bool) {
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

// integer returns a whole number, or 0 for any other value.
func (t fieldValue) integer() int {
	number, _ := t.number()
	if math.Abs(number) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(number)
}

func (t fieldValue) duration() (time.Duration, bool) {
	text, ok := t.value.(string)
	if !ok {
		return 0, false
	}
	duration, err := time.ParseDuration(text)
	return duration, err == nil
}

func (t fieldValue) quantity() (resource.Quantity, bool) {
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

// findingCollector collects findings.
type findingCollector struct{ findings []finding }

func (r *findingCollector) add(at fieldValue, typ ViolationType, format string, args ...any) {
	r.findings = append(r.findings, finding{path: at.path, documentPath: at.documentPath, typ: typ, message: fmt.Sprintf(format, args...)})
}

// requireNonNegative checks numbers that may not be below zero.
func (r *findingCollector) requireNonNegative(fields ...fieldValue) {
	for _, field := range fields {
		if number, ok := field.number(); ok && number < 0 {
			r.add(field, TypeInvalid, "%v is negative; it must be 0 or more", field.value)
		}
	}
}

// requireRange checks that a number lies between two others.
func (r *findingCollector) requireRange(field fieldValue, low, high float64) {
	if number, ok := field.number(); ok && (number < low || number > high) {
		r.add(field, TypeInvalid, "%v is out of range: it must be between %v and %v", field.value, low, high)
	}
}

// requireMinimum checks that a number is not below another.
func (r *findingCollector) requireMinimum(field fieldValue, low float64) {
	if number, ok := field.number(); ok && number < low {
		r.add(field, TypeInvalid, "%v is too small: it must be %v or more", field.value, low)
	}
}

// requireMinimumDurations checks that durations are not below least.
func (r *findingCollector) requireMinimumDurations(least time.Duration, fields ...fieldValue) {
	for _, field := range fields {
		if duration, ok := field.duration(); ok && duration < least {
			r.add(field, TypeInvalid, "%s is too short: it must be %s or longer", field.text(), least)
		}
	}
}

// requireNonNegativeQuantities checks that quantities are not negative.
func (r *findingCollector) requireNonNegativeQuantities(fields ...fieldValue) {
	for _, field := range fields {
		if quantity, ok := field.quantity(); ok && quantity.Sign() < 0 {
			r.add(field, TypeInvalid, "%v is negative; it must be 0 or more", field.value)
		}
	}
}

// requireOneOf checks a text that has few possible values, and suggests the most likely one.
func (r *findingCollector) requireOneOf(field fieldValue, allowed ...string) {
	if field.isSet() && !slices.Contains(allowed, field.text()) {
		hint := ""
		if better := suggest.Closest(field.text(), allowed); better != "" {
			hint = fmt.Sprintf("; did you mean %q?", better)
		}
		r.add(field, TypeNotSupported, "%q is not supported; use one of %s%s", field.text(), quotedList(allowed), hint)
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
