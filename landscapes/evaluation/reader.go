// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// maxTextBytes limits the text of all values of a package, in bytes.
const maxTextBytes = 16 << 20

// objectReader collects the objects of an evaluated package.
type objectReader struct {
	pkg    Package
	index  map[string]int // index of each file, by name
	syntax []*ast.File
	result Result
	values int
	text   int
	// isStopped is set once a limit is exceeded; then reading ends.
	isStopped bool
}

// position is where a value is written: index of the file, line and column.
type position struct{ file, line, column int }

func newObjectReader(pkg Package) *objectReader {
	pkg.MaxDepth, pkg.MaxValues = cmp.Or(pkg.MaxDepth, 64), cmp.Or(pkg.MaxValues, 200_000)
	r := &objectReader{pkg: pkg, index: make(map[string]int, len(pkg.Files))}
	for i, file := range pkg.Files {
		r.index[file.Name] = i
	}
	return r
}

// positionOf returns the place of a value. If the package does not have it, the parent's place
// counts.
func (r *objectReader) positionOf(value cue.Value, parent position) position {
	if pos := value.Pos(); pos.IsValid() {
		if file, ours := r.index[pos.Filename()]; ours {
			return position{file, pos.Line(), pos.Column()}
		}
	}
	return parent
}

// child is a field of a struct or an item of a list.
type child struct {
	value cue.Value
	at    position
}

// collect takes an object, or searches fields and items at any depth. It returns false if it finds
// none, and the caller reports the outermost such field: a misspelt kind must not remove an object
// silently. Empty values pass, and hidden fields and definitions are skipped.
func (r *objectReader) collect(value cue.Value, parent position, depth int) bool {
	at := r.positionOf(value, parent)
	if r.isStopped {
		return true
	}
	if depth > r.pkg.MaxDepth {
		r.failAt(at, "values are nested more than %d deep", r.pkg.MaxDepth)
		return true
	}
	if err := value.Err(); err != nil {
		r.reportAll(r.pkg.Files[at.file].Name, err)
		return true
	}
	kind := value.IncompleteKind()
	if kind == cue.StructKind {
		switch hasVersion, hasKind := hasField(value, "apiVersion"), hasField(value, "kind"); {
		case hasVersion && hasKind:
			r.addObject(value, at)
			return true
		case hasVersion:
			r.reportAt(at, schemas.TypeRequired, "this is not a declaration: it has an apiVersion but no kind%s", misspeltFieldHint(value))
			return true
		case hasKind:
			r.reportAt(at, schemas.TypeRequired, "this is not a declaration: it has a kind but no apiVersion%s", misspeltFieldHint(value))
			return true
		}
	}
	children, ok := r.children(value, kind, at)
	if !ok {
		if depth == 0 {
			r.reportAt(at, schemas.TypeRequired, "the file holds a plain value and no declaration")
		}
		return false
	}
	found := len(children) == 0
	var barren []child
	for _, c := range children {
		if r.collect(c.value, c.at, depth+1) {
			found = true
		} else {
			barren = append(barren, c)
		}
	}
	if !found && depth > 0 {
		return false
	}
	for _, c := range barren {
		r.reportAt(c.at, schemas.TypeRequired, "this is not a declaration: neither it nor its fields have an apiVersion and a kind%s; names of helpers begin with _ or #", misspeltFieldHint(c.value))
	}
	return true
}

// children returns the parts of a struct or list. It returns false for other values. It reports
// values that it cannot read.
func (r *objectReader) children(value cue.Value, kind cue.Kind, at position) ([]child, bool) {
	var children []child
	switch kind {
	case cue.StructKind:
		fields, err := value.Fields()
		if err != nil {
			r.reportAll(r.pkg.Files[at.file].Name, err)
			return nil, true
		}
		for fields.Next() {
			children = append(children, child{fields.Value(), r.positionOf(fields.Value(), at)})
		}
	case cue.ListKind:
		items, err := value.List()
		if err != nil {
			r.reportAll(r.pkg.Files[at.file].Name, err)
			return nil, true
		}
		for items.Next() {
			children = append(children, child{items.Value(), r.positionOf(items.Value(), at)})
		}
	default:
		return nil, false
	}
	return children, true
}

func hasField(value cue.Value, field string) bool {
	return value.LookupPath(cue.MakePath(cue.Str(field))).Exists()
}

// misspeltFieldHint suggests the right name for a misspelt field.
func misspeltFieldHint(value cue.Value) string {
	fields, err := value.Fields()
	if err != nil {
		return ""
	}
	for fields.Next() {
		name := fields.Selector().Unquoted()
		if better := suggest.Closest(name, []string{"apiVersion", "kind"}); better != "" && better != name {
			return fmt.Sprintf(": did you mean %s instead of %s?", better, name)
		}
	}
	return ""
}

func (r *objectReader) addObject(value cue.Value, at position) {
	if err := value.Validate(cue.Concrete(true), cue.Final()); err != nil {
		r.reportAll(r.pkg.Files[at.file].Name, err)
		return
	}
	before := len(r.result.Violations)
	object := r.content(value, at, 0)
	if len(r.result.Violations) == before {
		r.result.Objects = append(r.result.Objects, object)
	}
}

func (r *objectReader) failAt(at position, format string, args ...any) {
	if !r.isStopped {
		r.isStopped = true
		r.reportAt(at, schemas.TypeTooMany, format, args...)
	}
}

// content returns a concrete value with its parts.
func (r *objectReader) content(value cue.Value, parent position, depth int) *Value {
	at := r.positionOf(value, parent)
	result := &Value{Kind: Null, File: at.file, Line: at.line, Column: at.column}
	if chosen, ok := value.Default(); ok {
		value = chosen
	}
	r.values++
	switch {
	case r.isStopped:
		return result
	case r.values > r.pkg.MaxValues:
		r.failAt(at, "the package has more than %d values", r.pkg.MaxValues)
		return result
	case depth > r.pkg.MaxDepth:
		r.failAt(at, "values are nested more than %d deep", r.pkg.MaxDepth)
		return result
	}
	switch kind := value.Kind(); kind {
	case cue.StructKind:
		result.Kind, result.Fields = Map, map[string]*Value{}
		fields, err := value.Fields()
		if err != nil {
			r.reportAll(r.pkg.Files[at.file].Name, err)
			return result
		}
		for fields.Next() {
			name := fields.Selector().Unquoted()
			r.countText(at, name)
			result.Fields[name] = r.content(fields.Value(), at, depth+1)
		}
	case cue.ListKind:
		result.Kind = List
		children, _ := r.children(value, kind, at)
		for _, c := range children {
			result.Items = append(result.Items, r.content(c.value, at, depth+1))
		}
	default:
		result.Kind, result.Text = r.scalar(value, at)
		r.countText(at, result.Text)
	}
	return result
}

// countText adds text to the total of the package.
func (r *objectReader) countText(at position, text string) {
	if r.text += len(text); r.text > maxTextBytes {
		r.failAt(at, "the values of the package have more than %d MiB of text", maxTextBytes>>20)
	}
}

// scalar returns the kind and text of a plain value.
func (r *objectReader) scalar(value cue.Value, at position) (Kind, string) {
	switch value.Kind() {
	case cue.IntKind:
		if number, err := value.Int64(); err == nil {
			return Int, strconv.FormatInt(number, 10)
		}
		r.reportAt(at, schemas.TypeInvalid, "the value is not a number that fits 64 bits")
	case cue.FloatKind, cue.NumberKind:
		if number, err := value.Float64(); err == nil && !math.IsInf(number, 0) {
			return Float, strconv.FormatFloat(number, 'g', -1, 64)
		}
		r.reportAt(at, schemas.TypeInvalid, "the value is not a number that fits 64 bits")
	case cue.BoolKind:
		truth, _ := value.Bool()
		return Bool, strconv.FormatBool(truth)
	case cue.StringKind:
		text, _ := value.String()
		return String, text
	case cue.BytesKind:
		data, _ := value.Bytes()
		if utf8.Valid(data) {
			return String, string(data)
		}
		r.reportAt(at, schemas.TypeInvalid, "the value holds bytes that are not text; write them as base64")
	case cue.NullKind:
	default:
		r.reportAt(at, schemas.TypeInvalid, "the value has no concrete form")
	}
	return Null, ""
}
