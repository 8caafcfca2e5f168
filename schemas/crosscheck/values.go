// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"strings"
)

// The getters accept any object: a field may be missing or have any type. The structure reports
// such faults.

func valueAt(object map[string]any, fields ...string) any {
	var value any = object
	for _, f := range fields {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[f]
	}
	return value
}

func textAt(object map[string]any, fields ...string) string {
	s, _ := valueAt(object, fields...).(string)
	return s
}

func listAt(object map[string]any, fields ...string) []any {
	l, _ := valueAt(object, fields...).([]any)
	return l
}

func mapAt(object map[string]any, fields ...string) map[string]any {
	m, _ := valueAt(object, fields...).(map[string]any)
	return m
}

func numberAt(object map[string]any, fields ...string) int64 {
	switch n := valueAt(object, fields...).(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func stringItems(items []any) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// visitValues visits the values at a path such as spec.dns.providers[].secretName.
func visitValues(object map[string]any, pattern string, visit func(path string, value any)) {
	var walk func(value any, done string, rest []string)
	walk = func(value any, done string, rest []string) {
		if len(rest) == 0 {
			if value != nil {
				visit(done, value)
			}
			return
		}
		m, ok := value.(map[string]any)
		if !ok {
			return
		}
		name, isList := strings.CutSuffix(rest[0], "[]")
		path := strings.TrimPrefix(done+"."+name, ".")
		if !isList {
			walk(m[name], path, rest[1:])
			return
		}
		items, _ := m[name].([]any)
		for i, item := range items {
			walk(item, fmt.Sprintf("%s[%d]", path, i), rest[1:])
		}
	}
	walk(object, "", strings.Split(pattern, "."))
}
