package evaluation

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"github.com/pergola-dev/pergola/schemas"
)

// Selected reports whether CUE takes a file into a package by its name. Names that begin with _ or
// a dot, tests and tools are left out.
func Selected(name string) bool {
	base := path.Base(name)
	return !strings.HasPrefix(base, "_") && !strings.HasPrefix(base, ".") && !strings.HasSuffix(base, "_test.cue") && !strings.HasSuffix(base, "_tool.cue")
}

// Header gives the name in the package clause of a file, empty if there is none, and whether
// @ignore() before that clause leaves the file out of every package.
func Header(file File) (packageName string, ignored bool) {
	syntax, err := parser.ParseFile(file.Name, file.Data, parser.PackageClauseOnly)
	if err != nil {
		return "", false // evaluation reports it
	}
	return syntax.PackageName(), slices.ContainsFunc(header(syntax), func(a *ast.Attribute) bool { return key(a) == "ignore" })
}

// First gives the line of the first declaration of a file, 0 if it has none, and says which of its
// fields are hidden, "" if none is.
func First(file File) (line int, hidden string) {
	syntax, err := parser.ParseFile(file.Name, file.Data)
	if err != nil {
		return 0, "" // evaluation reports it
	}
	var names []string
	for _, declaration := range syntax.Decls {
		switch declaration.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.CommentGroup, *ast.Attribute:
			continue
		}
		if line == 0 {
			line = declaration.Pos().Line()
		}
		field, is := declaration.(*ast.Field)
		if !is {
			continue
		}
		if name, _, err := ast.LabelName(field.Label); err == nil && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#")) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		hidden = fmt.Sprintf("fields whose names begin with _ or # are hidden, as %s", strings.Join(names, ", "))
	}
	return line, hidden
}

// header gives the attributes of a file as a whole: those before the package clause, or before the
// first field where there is none.
func header(file *ast.File) []*ast.Attribute {
	var attributes []*ast.Attribute
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.Attribute:
			attributes = append(attributes, d)
		case *ast.CommentGroup:
		default:
			return attributes
		}
	}
	return attributes
}

func key(attribute *ast.Attribute) string {
	name, _ := attribute.Split()
	return name
}

// refusals say why an attribute by which the cue command decides what a file says is not allowed.
// Other attributes mean nothing to CUE.
var refusals = map[string]string{
	"extern": "@extern is not allowed: declarations do not read other files",
	"embed":  "@embed is not allowed: declarations do not read other files; write the content here",
	"if":     "@if is not allowed: Pergola sets no tags, so the file would never or always count; remove the attribute, or leave the file out with @ignore()",
	"tag":    "@tag is not allowed: Pergola sets no tags, so the field would always keep the value that is written here; remove the attribute",
	"ignore": "@ignore() has no effect here, and the file counts: put it before the package clause, as the first line of the file",
}

// checkAttributes reports attributes that would have no effect, or another one than with the cue
// command.
func (r *reader) checkAttributes(name string, file *ast.File) bool {
	sound := true
	leading := header(file)
	ast.Walk(file, func(node ast.Node) bool {
		attribute, is := node.(*ast.Attribute)
		if !is {
			return true
		}
		message := refusals[key(attribute)]
		if key(attribute) == "ignore" && slices.Contains(leading, attribute) {
			message = "@ignore() leaves the file out, so it declares nothing; remove the attribute"
		}
		if message != "" {
			at := attribute.Pos().Position()
			r.report(name, at.Line, at.Column, schemas.TypeForbidden, "%s", message)
			sound = false
		}
		return true
	}, nil)
	return sound
}

// Declares gives the line of the first struct of a file that has the fields apiVersion and kind; 0
// if there is none. Nothing is evaluated.
func Declares(file File) (line int, err error) {
	syntax, err := parser.ParseFile(file.Name, file.Data)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", file.Name, err)
	}
	ast.Walk(syntax, func(node ast.Node) bool {
		var declarations []ast.Decl
		switch n := node.(type) {
		case *ast.File:
			declarations = n.Decls
		case *ast.StructLit:
			declarations = n.Elts
		}
		if line == 0 && findField(declarations, "apiVersion") != nil && findField(declarations, "kind") != nil {
			line = max(1, findField(declarations, "apiVersion").Pos().Line())
		}
		return line == 0
	}, nil)
	return line, nil
}
