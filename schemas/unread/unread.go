// SPDX-License-Identifier: Apache-2.0

package unread

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

//go:embed fields.tsv
var fieldsTable string

// fieldsByKind are the unread fields by kind; list items have no index.
var fieldsByKind = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(fieldsTable) {
		kind, field, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok {
			out[kind] = append(out[kind], field)
		}
	}
	return out
})

// The FieldsOf function returns the fields of a kind that nothing reads.
func FieldsOf(kind string) []string { return fieldsByKind()[kind] }

// FieldsIn returns the fields that an object sets and nothing reads. A field in several list items
// is returned for the first.
func FieldsIn(kind string, object map[string]any) []fieldpath.Path {
	var out []fieldpath.Path
	for _, field := range fieldsByKind()[kind] {
		if at := findField(object, strings.Split(field, "."), nil); at != nil {
			out = append(out, at)
		}
	}
	return out
}

func findField(value any, names []string, at fieldpath.Path) fieldpath.Path {
	switch v := value.(type) {
	case map[string]any:
		child, ok := v[names[0]]
		switch {
		case !ok || child == nil:
			return nil
		case len(names) == 1:
			return at.Append(names[0])
		}
		return findField(child, names[1:], at.Append(names[0]))
	case []any:
		for i, item := range v {
			if found := findField(item, names, at.Append(i)); found != nil {
				return found
			}
		}
	}
	return nil
}
