package schemas

import (
	"maps"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// rename is a field that was written with another name than the one that was most likely meant.
type rename struct{ written, meant string }

// renames are in the order in which they were found: outer fields first.
type renames []rename

// renamed gives an object as it was most likely meant: with the right names for fields that are
// misspelt. So what is in such a field is looked at in the same run, and nobody hears that the
// field itself is missing. It gives the findings about the names.
func renamed(kind *structure.Kind, object map[string]any, broken []finding) (map[string]any, []finding, renames) {
	var misspelt []finding
	var all renames
	for len(all) < 100 { // each round may show names inside of the fields of the last one
		var found []finding
		for _, f := range broken {
			if f.typ == TypeForbidden && f.meant != "" && f.rule == RuleStructure {
				found = append(found, f)
			}
		}
		before := len(all)
		for _, f := range found {
			if moved, ok := moveField(object, fieldpath.Parse(f.path), fieldpath.Parse(f.meant)); ok {
				object, misspelt, all = moved, append(misspelt, f), append(all, rename{f.path, f.meant})
			}
		}
		if len(all) == before {
			break
		}
		broken = structural(kind, object)
	}
	return object, misspelt, all
}

// moveField gives a copy of an object in which a field has another name. Both paths are those of
// fields of the same parent.
func moveField(object map[string]any, from, to fieldpath.Path) (map[string]any, bool) {
	if len(from) != len(to) || len(from) == 0 {
		return nil, false
	}
	name := fieldpath.Name(from[0])
	value, ok := object[name]
	if !ok {
		return nil, false
	}
	out := maps.Clone(object)
	if len(from) == 1 {
		meant := fieldpath.Name(to[0])
		if out[meant] != nil {
			return nil, false // another misspelt field was taken for it
		}
		delete(out, name)
		out[meant] = value
		return out, true
	}
	inner, ok := moveIn(value, from[1:], to[1:])
	out[name] = inner
	return out, ok
}

func moveIn(value any, from, to fieldpath.Path) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		return moveField(v, from, to)
	case []any:
		index, ok := from[0].(int)
		if !ok || index >= len(v) || len(from) < 2 {
			return nil, false
		}
		out := slices.Clone(v)
		out[index], ok = moveIn(v[index], from[1:], to[1:])
		return out, ok
	}
	return nil, false
}

// places makes findings about fields inside of a misspelt one point to what is written.
func (all renames) places(findings []finding) []finding {
	if len(all) == 0 {
		return findings
	}
	out := slices.Clone(findings)
	for i := range out {
		at := out[i].path
		if out[i].at != "" {
			at = out[i].at
		}
		written := at
		for _, r := range slices.Backward(all) {
			if within(r.meant, written) {
				written = r.written + strings.TrimPrefix(written, r.meant)
			}
		}
		if written != at {
			out[i].at = written
		}
	}
	return out
}
