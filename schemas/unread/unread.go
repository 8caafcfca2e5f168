package unread

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

//go:embed fields.tsv
var table string

// fields are the unread fields by kind; list items have no index.
var fields = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(table) {
		kind, field, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok {
			out[kind] = append(out[kind], field)
		}
	}
	return out
})

// The Of function returns the fields of a kind that nothing reads.
func Of(kind string) []string { return fields()[kind] }

// In returns the fields that an object sets and nothing reads. A field in several list items is
// returned for the first.
func In(kind string, object map[string]any) []fieldpath.Path {
	var out []fieldpath.Path
	for _, field := range fields()[kind] {
		if at := find(object, strings.Split(field, "."), nil); at != nil {
			out = append(out, at)
		}
	}
	return out
}

func find(value any, names []string, at fieldpath.Path) fieldpath.Path {
	switch v := value.(type) {
	case map[string]any:
		child, ok := v[names[0]]
		switch {
		case !ok || child == nil:
			return nil
		case len(names) == 1:
			return at.Append(names[0])
		}
		return find(child, names[1:], at.Append(names[0]))
	case []any:
		for i, item := range v {
			if found := find(item, names, at.Append(i)); found != nil {
				return found
			}
		}
	}
	return nil
}
