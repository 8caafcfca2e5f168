// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// typeMarkers reads markers in comments of the types below a folder: keys of lists, and values of
// enumerations.
func typeMarkers(dir, module string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(d.Name(), "zz_generated") || strings.HasSuffix(file, ".pb.go") {
			return err
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		out = append(out, markersOf(source, path.Join(module, filepath.ToSlash(rel)))...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the comments of %s: %w", module, err)
	}
	return out, nil
}

func markersOf(source *ast.File, pkg string) []string {
	var out []string
	enums := map[string]bool{}
	for _, declaration := range source.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			typ, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if markers(typ.Doc, general.Doc)["enum"] != nil {
				enums[typ.Name.Name] = true
			}
			if fields, ok := typ.Type.(*ast.StructType); ok {
				out = append(out, listsOf(pkg+"."+typ.Name.Name, fields)...)
			}
		}
	}
	for name, values := range constantsOf(source, enums) {
		slices.Sort(values)
		out = append(out, fmt.Sprintf("%s.%s\t\tenum\t%s", pkg, name, strings.Join(slices.Compact(values), ",")))
	}
	return out
}

func listsOf(name string, fields *ast.StructType) []string {
	var out []string
	for _, field := range fields.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		json, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		found := markers(field.Doc)
		if len(found["listType"]) == 0 {
			continue
		}
		switch found["listType"][0] {
		case "map":
			out = append(out, fmt.Sprintf("%s\t%s\tkeys\t%s", name, json, strings.Join(found["listMapKey"], ",")))
		case "set":
			out = append(out, fmt.Sprintf("%s\t%s\tset\t", name, json))
		}
	}
	return out
}

// markers are the lines "+name=value" of comments.
func markers(comments ...*ast.CommentGroup) map[string][]string {
	out := map[string][]string{}
	for _, group := range comments {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			if text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")), "+"); ok {
				name, value, _ := strings.Cut(text, "=")
				out[name] = append(out[name], strings.TrimSpace(value))
			}
		}
	}
	return out
}

// constantsOf are the values of string constants of types.
func constantsOf(source *ast.File, types map[string]bool) map[string][]string {
	out := map[string][]string{}
	for _, declaration := range source.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			of, ok := value.Type.(*ast.Ident)
			if !ok || !types[of.Name] || len(value.Values) != 1 {
				continue
			}
			if literal, ok := value.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					out[of.Name] = append(out[of.Name], text)
				}
			}
		}
	}
	return out
}
