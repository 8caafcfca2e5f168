// SPDX-License-Identifier: Apache-2.0

package why

import (
	"io/fs"
	"path"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// cueReader finds fields in the source of a component without evaluating it. It follows structs,
// conditions and references within the package or to another one of the catalogue. At any other
// computation it stops at the last label.
type cueReader struct {
	catalogue fs.FS
	files     map[string]*ast.File
	// packages are the files by folder; a component's package includes the folders above it.
	packages map[string][]string
}

// cuePosition is a label in a file of the catalogue.
type cuePosition struct {
	file         string
	line, column int
	// depth counts the steps of the path that were found; exact reports whether all were.
	depth int
	exact bool
}

// maxReferences limits the followed references.
const maxReferences = 12

func newCUEReader(catalogue fs.FS) *cueReader {
	return &cueReader{catalogue: catalogue, files: map[string]*ast.File{}, packages: map[string][]string{}}
}

// find starts at the object whose kind is at a line.
func (r *cueReader) find(file string, line int, list steps) cuePosition {
	parsed := r.parse(file)
	if parsed == nil {
		return cuePosition{}
	}
	object := objectAt(parsed, line)
	start := cuePosition{file: file, line: line, column: 1, exact: len(list) == 0}
	if object == nil {
		return start
	}
	return r.descend(file, object, list, start, maxReferences)
}

func (r *cueReader) parse(file string) *ast.File {
	if f, known := r.files[file]; known {
		return f
	}
	data, err := fs.ReadFile(r.catalogue, file)
	if err != nil || len(data) > maxFile {
		return nil
	}
	parsed, err := parser.ParseFile(file, data)
	if err != nil {
		parsed = nil
	}
	r.files[file] = parsed
	return parsed
}

// objectAt returns the innermost struct with label kind at a line.
func objectAt(file *ast.File, line int) *ast.StructLit {
	var found *ast.StructLit
	ast.Walk(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructLit); ok {
			for _, field := range fieldsOf(s) {
				if labelText(field) == "kind" && (field.Pos().Line() == line || field.Value.Pos().Line() == line) {
					found = s
				}
			}
		}
		return true
	}, nil)
	return found
}

func fieldsOf(s *ast.StructLit) []*ast.Field {
	var out []*ast.Field
	for _, e := range s.Elts {
		if field, ok := e.(*ast.Field); ok {
			out = append(out, field)
		}
	}
	return out
}

func labelText(field *ast.Field) string {
	switch label := field.Label.(type) {
	case *ast.Ident:
		return label.Name
	case *ast.BasicLit:
		if text, err := literal.Unquote(label.Value); err == nil {
			return text
		}
	case *ast.Alias:
		if inner, ok := label.Expr.(ast.Label); ok {
			return labelText(&ast.Field{Label: inner})
		}
	}
	return ""
}

// descend follows the path from a value; best is the best place so far.
func (r *cueReader) descend(file string, value ast.Node, list steps, best cuePosition, hops int) cuePosition {
	if len(list) == 0 {
		best.exact = true
		return best
	}
	if hops == 0 || value == nil {
		return best
	}
	deeper := func(node ast.Node) {
		if found := r.descend(file, node, list, best, hops-1); isBetterPosition(found, best) {
			best = found
		}
	}
	switch v := value.(type) {
	case *ast.StructLit:
		for _, e := range v.Elts {
			switch e := e.(type) {
			case *ast.Field:
				if list[0].isItem() || labelText(e) != list[0].key {
					continue
				}
				here := cuePositionAt(file, e.Label.Pos(), best.depth+1)
				if found := r.descend(file, e.Value, list[1:], here, hops); isBetterPosition(found, best) {
					best = found
				}
			case *ast.EmbedDecl:
				deeper(e.Expr)
			case *ast.Comprehension:
				deeper(e.Value)
			}
		}
	case *ast.ListLit:
		best = r.findItem(file, v, list, best, hops)
	case *ast.BinaryExpr:
		deeper(v.X)
		deeper(v.Y)
	case *ast.ParenExpr:
		deeper(v.X)
	case *ast.UnaryExpr:
		deeper(v.X)
	case *ast.Comprehension:
		deeper(v.Value)
	case *ast.IndexExpr: // [if a {x}, y][0]
		deeper(v.X)
	case *ast.CallExpr: // list.Concat([a, b])
		for _, argument := range v.Args {
			deeper(argument)
		}
	case *ast.Ident, *ast.SelectorExpr:
		for _, target := range r.resolveReference(file, v) {
			if found := r.descend(target.file, target.value, list, best, hops-1); isBetterPosition(found, best) {
				best = found
			}
		}
	}
	return best
}

// findItem finds an item of a list by its name, also in expressions that result in items.
func (r *cueReader) findItem(file string, v *ast.ListLit, list steps, best cuePosition, hops int) cuePosition {
	for _, e := range v.Elts {
		rest := list
		here := best
		if s, ok := e.(*ast.StructLit); ok && list[0].isItem() {
			if !r.isNamedItem(s, list[0]) {
				continue
			}
			rest, here = list[1:], cuePositionAt(file, s.Pos(), best.depth+1)
		} else if list[0].isItem() && list[0].name == "" {
			continue // items without names cannot be distinguished
		}
		if c, ok := e.(*ast.Comprehension); ok {
			if s, ok := c.Value.(*ast.StructLit); ok && list[0].isItem() && r.isNamedItem(s, list[0]) {
				rest, here = list[1:], cuePositionAt(file, s.Pos(), best.depth+1)
			}
		}
		if found := r.descend(file, e, rest, here, hops-1); isBetterPosition(found, best) {
			best = found
		}
	}
	return best
}

// isNamedItem reports whether a struct is the item of a step.
func (r *cueReader) isNamedItem(s *ast.StructLit, item step) bool {
	for _, field := range fieldsOf(s) {
		if lit, ok := field.Value.(*ast.BasicLit); ok && labelText(field) == item.name {
			text := lit.Value
			if lit.Kind == token.STRING {
				text, _ = literal.Unquote(lit.Value)
			}
			return text == item.text
		}
	}
	return false
}

func isBetterPosition(a, b cuePosition) bool {
	return a.depth > b.depth || a.depth == b.depth && a.exact && !b.exact
}

func cuePositionAt(file string, pos token.Pos, depth int) cuePosition {
	return cuePosition{file: file, line: pos.Line(), column: pos.Column(), depth: depth}
}

// cueTarget is the target of a reference.
type cueTarget struct {
	file  string
	value ast.Node
}

// resolveReference finds the target of a name: an enclosing field of its file, or a top-level field
// of its package or of another one.
func (r *cueReader) resolveReference(file string, reference ast.Node) []cueTarget {
	switch v := reference.(type) {
	case *ast.Ident:
		if out := enclosingFields(r.parse(file), v); len(out) > 0 {
			for i := range out {
				out[i].file = file
			}
			return out
		}
		return r.topLevelFields(r.packageOf(file), v.Name)
	case *ast.SelectorExpr:
		name := labelText(&ast.Field{Label: v.Sel})
		if base, ok := v.X.(*ast.Ident); ok {
			if dir, imported := r.importedFolder(file, base.Name); imported {
				return r.topLevelFields(r.filesIn(dir), name)
			}
		}
		var out []cueTarget
		for _, base := range r.resolveReference(file, v.X) {
			out = append(out, r.memberFields(base, name, maxReferences)...)
		}
		return out
	}
	return nil
}

// memberFields returns the fields of this name in a target.
func (r *cueReader) memberFields(in cueTarget, name string, hops int) []cueTarget {
	if hops == 0 {
		return nil
	}
	var out []cueTarget
	switch v := in.value.(type) {
	case *ast.StructLit:
		for _, e := range v.Elts {
			switch e := e.(type) {
			case *ast.Field:
				if labelText(e) == name {
					out = append(out, cueTarget{in.file, e.Value})
				}
			case *ast.EmbedDecl:
				out = append(out, r.memberFields(cueTarget{in.file, e.Expr}, name, hops-1)...)
			}
		}
	case *ast.BinaryExpr:
		out = append(r.memberFields(cueTarget{in.file, v.X}, name, hops-1), r.memberFields(cueTarget{in.file, v.Y}, name, hops-1)...)
	case *ast.ParenExpr:
		out = r.memberFields(cueTarget{in.file, v.X}, name, hops-1)
	case *ast.Ident, *ast.SelectorExpr:
		for _, base := range r.resolveReference(in.file, v) {
			out = append(out, r.memberFields(base, name, hops-1)...)
		}
	}
	return out
}

// enclosingFields returns the fields of this name in the innermost struct around a reference.
func enclosingFields(file *ast.File, reference *ast.Ident) []cueTarget {
	var out []cueTarget
	if file == nil {
		return nil
	}
	ast.Walk(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructLit)
		if !ok || reference.Pos().Offset() < s.Pos().Offset() || reference.Pos().Offset() > s.End().Offset() {
			return true
		}
		var here []cueTarget
		for _, field := range fieldsOf(s) {
			if labelText(field) == reference.Name {
				here = append(here, cueTarget{value: field.Value})
			}
		}
		if len(here) > 0 {
			out = here
		}
		return true
	}, nil)
	return out
}

// topLevelFields returns the fields of this name at the top level of files.
func (r *cueReader) topLevelFields(files []string, name string) []cueTarget {
	var out []cueTarget
	for _, file := range files {
		parsed := r.parse(file)
		if parsed == nil {
			continue
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.Field:
				if labelText(d) == name {
					out = append(out, cueTarget{file, d.Value})
				}
			case *ast.LetClause:
				if d.Ident.Name == name {
					out = append(out, cueTarget{file, d.Expr})
				}
			}
		}
	}
	return out
}

// packageOf returns the files of a file's package: in its folder and the folders above.
func (r *cueReader) packageOf(file string) []string {
	var out []string
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		out = append(out, r.filesIn(dir)...)
		if dir == "." {
			return out
		}
	}
}

func (r *cueReader) filesIn(dir string) []string {
	if known, ok := r.packages[dir]; ok {
		return known
	}
	entries, _ := fs.ReadDir(r.catalogue, dir)
	var out []string
	for _, entry := range entries {
		if path.Ext(entry.Name()) == ".cue" && !entry.IsDir() {
			out = append(out, path.Join(dir, entry.Name()))
		}
	}
	r.packages[dir] = out
	return out
}

// importedFolder returns the folder of the catalogue that a file imports by this name.
func (r *cueReader) importedFolder(file, name string) (string, bool) {
	parsed := r.parse(file)
	if parsed == nil {
		return "", false
	}
	for spec := range parsed.ImportSpecs() {
		where, err := literal.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		where, _, _ = strings.Cut(where, ":")
		called := path.Base(where)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		if inside, ok := strings.CutPrefix(where, "pergola.dev/components/"); ok && called == name {
			return inside, true
		}
	}
	return "", false
}
