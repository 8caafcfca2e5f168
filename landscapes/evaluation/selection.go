// SPDX-License-Identifier: Apache-2.0

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

// IsSelected reports whether CUE accepts a file name in a package. It ignores tests, tools and
// names that begin with _ or a dot.
func IsSelected(name string) bool {
	base := path.Base(name)
	return !strings.HasPrefix(base, "_") && !strings.HasPrefix(base, ".") && !strings.HasSuffix(base, "_test.cue") && !strings.HasSuffix(base, "_tool.cue")
}

// ParseHeader returns the name in the package clause of a file, or an empty string. ignored reports
// whether @ignore() before that clause excludes the file from every package.
func ParseHeader(file File) (packageName string, ignored bool) {
	syntax, err := parser.ParseFile(file.Name, file.Data, parser.PackageClauseOnly)
	if err != nil {
		return "", false // evaluation reports it
	}
	return syntax.PackageName(), slices.ContainsFunc(leadingAttributes(syntax), func(a *ast.Attribute) bool { return attributeName(a) == "ignore" })
}

// FirstDeclaration returns the line of the first declaration of a file, or 0. hidden describes
// which fields of the file are hidden, or is empty.
func FirstDeclaration(file File) (line int, hidden string) {
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

// leadingAttributes returns the attributes before the package clause, or before the first
// declaration.
func leadingAttributes(file *ast.File) []*ast.Attribute {
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

func attributeName(attribute *ast.Attribute) string {
	name, _ := attribute.Split()
	return name
}

// attributeErrors explain why attributes of the cue command that change a file's meaning are not
// allowed. CUE itself ignores other attributes.
var attributeErrors = map[string]string{
	"extern": "@extern is not allowed: declarations do not read other files",
	"embed":  "@embed is not allowed: declarations do not read other files; write the content here",
	"if":     "@if is not allowed: Pergola sets no tags, so the file would never or always count; remove the attribute, or use @ignore()",
	"tag":    "@tag is not allowed: Pergola sets no tags, so the field would always keep the value that is written here; remove the attribute",
	"ignore": "@ignore() has no effect here, and the file counts: put it before the package clause, as the first line of the file",
}

// checkAttributes reports attributes without an effect, or with a different effect than in the cue
// command.
func (r *objectReader) checkAttributes(name string, file *ast.File) bool {
	sound := true
	leading := leadingAttributes(file)
	ast.Walk(file, func(node ast.Node) bool {
		attribute, is := node.(*ast.Attribute)
		if !is {
			return true
		}
		message := attributeErrors[attributeName(attribute)]
		if attributeName(attribute) == "ignore" && slices.Contains(leading, attribute) {
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

// FirstObjectLine returns the line of the first struct in a file with the fields apiVersion and
// kind, or
// 0. It evaluates nothing.
func FirstObjectLine(file File) (line int, err error) {
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
