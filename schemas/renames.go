package schemas

import (
	"maps"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// rename is a field that was written with another name than most likely meant.
type rename struct{ written, meant string }

// renames are in the order of discovery: outer fields first.
type renames []rename

// renamed returns an object with the most likely names of misspelt fields. So their content is
// checked in the same run, and they do not count as missing. It also returns the findings about the
// names.
func renamed(kind *structure.Kind, object map[string]any, broken []finding) (map[string]any, []finding, renames) {
	var misspelt []finding
	var all renames
	for len(all) < 100 { // each round may reveal names inside the fields of the last one
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

// moveField returns a copy of an object in which a field has another name. Both paths have the same
// parent.
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
			return nil, false // another misspelt field has this name already
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

// places makes findings inside a misspelt field point to the name that was written.
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
