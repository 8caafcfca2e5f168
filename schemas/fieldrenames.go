// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// fieldRename is a field that was written with a different name than most likely meant.
type fieldRename struct{ written, meant string }

// fieldRenames are in the order of discovery: outer fields first.
type fieldRenames []fieldRename

// correctFieldNames returns an object with the most likely names of misspelt fields. So their
// content is checked in the same run, and they do not count as missing. It also returns the
// findings about the names.
func correctFieldNames(kind *structure.Kind, object map[string]any, broken []finding) (map[string]any, []finding, fieldRenames) {
	var misspelt []finding
	var all fieldRenames
	for len(all) < 100 { // each round may reveal names inside the fields of the last one
		var found []finding
		for _, f := range broken {
			if f.typ == TypeForbidden && f.suggestion != "" && f.rule == RuleStructure {
				found = append(found, f)
			}
		}
		before := len(all)
		for _, f := range found {
			if moved, ok := renameField(object, fieldpath.Parse(f.path), fieldpath.Parse(f.suggestion)); ok {
				object, misspelt, all = moved, append(misspelt, f), append(all, fieldRename{f.path, f.suggestion})
			}
		}
		if len(all) == before {
			break
		}
		broken = structuralFindings(kind, object)
	}
	return object, misspelt, all
}

// renameField returns a copy of an object in which a field has another name. Both paths have the
// same parent.
func renameField(object map[string]any, from, to fieldpath.Path) (map[string]any, bool) {
	if len(from) != len(to) || len(from) == 0 {
		return nil, false
	}
	name := fieldpath.StepName(from[0])
	value, ok := object[name]
	if !ok {
		return nil, false
	}
	out := maps.Clone(object)
	if len(from) == 1 {
		meant := fieldpath.StepName(to[0])
		if out[meant] != nil {
			return nil, false // another misspelt field has this name already
		}
		delete(out, name)
		out[meant] = value
		return out, true
	}
	inner, ok := renameNestedField(value, from[1:], to[1:])
	out[name] = inner
	return out, ok
}

func renameNestedField(value any, from, to fieldpath.Path) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		return renameField(v, from, to)
	case []any:
		index, ok := from[0].(int)
		if !ok || index >= len(v) || len(from) < 2 {
			return nil, false
		}
		out := slices.Clone(v)
		out[index], ok = renameNestedField(v[index], from[1:], to[1:])
		return out, ok
	}
	return nil, false
}

// restorePaths makes findings inside a misspelt field point to the name that was written.
func (all fieldRenames) restorePaths(findings []finding) []finding {
	if len(all) == 0 {
		return findings
	}
	out := slices.Clone(findings)
	for i := range out {
		at := out[i].path
		if out[i].documentPath != "" {
			at = out[i].documentPath
		}
		written := at
		for _, r := range slices.Backward(all) {
			if isWithinPath(r.meant, written) {
				written = r.written + strings.TrimPrefix(written, r.meant)
			}
		}
		if written != at {
			out[i].documentPath = written
		}
	}
	return out
}
