// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	goast "go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
)

// sourceReads are the names that the sources read.
type sourceReads struct {
	// selectedPairs are {parent, name} pairs of CUE selectors; the parent is "" if unknown.
	selectedPairs map[[2]string]bool
	// usedWholePairs is the subset of selected whose values are used as a whole.
	usedWholePairs map[[2]string]bool
	// goFieldNames are selected Go fields; textParts are the parts of strings that may be field
	// paths.
	goFieldNames, textParts map[string]bool
}

// readerFolders are the folders whose sources read declarations. Most code in api and schemas
// handles every field; only packages across and mutation use values.
var readerFolders = []string{"cmd", "components", "controllers", "health", "landscapes", "plan", "render", "secrets", "schemas/crosscheck", "schemas/mutation"}

func readSources(root fs.FS) (sourceReads, error) {
	s := sourceReads{selectedPairs: map[[2]string]bool{}, usedWholePairs: map[[2]string]bool{}, goFieldNames: map[string]bool{}, textParts: map[string]bool{}}
	for _, folder := range readerFolders {
		err := fs.WalkDir(root, folder, func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || file == "schemas/unread"):
				return fs.SkipDir
			case d.IsDir() || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			data, err := fs.ReadFile(root, file)
			if err != nil {
				return err
			}
			switch path.Ext(file) {
			case ".cue":
				return s.addCUEFile(file, data)
			case ".go":
				return s.addGoFile(file, data)
			}
			return nil
		})
		if err != nil {
			return sourceReads{}, fmt.Errorf("read the sources in %s: %w", folder, err)
		}
	}
	return s, nil
}

func (s sourceReads) addGoFile(file string, data []byte) error {
	parsed, err := goparser.ParseFile(token.NewFileSet(), file, data, goparser.SkipObjectResolution)
	if err != nil {
		return err
	}
	goast.Inspect(parsed, func(n goast.Node) bool {
		switch n := n.(type) {
		case *goast.SelectorExpr:
			s.goFieldNames[n.Sel.Name] = true
		case *goast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".[]/", r) }) {
					s.textParts[part] = err == nil
				}
			}
		}
		return true
	})
	return nil
}

// addCUEFile collects the selector chains of a file: x.spec.settings reads settings below spec. The
// last value of a chain counts as read with all its fields, unless it is only renamed or checked
// for existence.
func (s sourceReads) addCUEFile(file string, data []byte) error {
	parsed, err := parser.ParseFile(file, data)
	if err != nil {
		return err
	}
	goesOn := map[ast.Node]bool{}
	var renamed func(ast.Expr)
	renamed = func(x ast.Expr) {
		goesOn[x] = true
		switch x := x.(type) {
		case *ast.BinaryExpr:
			renamed(x.X)
			renamed(x.Y)
		case *ast.UnaryExpr:
			renamed(x.X)
		case *ast.ParenExpr:
			renamed(x.X)
		}
	}
	chain := func(n ast.Node, x ast.Expr, name string) {
		goesOn[x] = true
		place := [2]string{parentName(x), name}
		s.selectedPairs[place] = true
		if !goesOn[n] {
			s.usedWholePairs[place] = true
		}
	}
	ast.Walk(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if name, _, err := ast.LabelName(n.Label); err == nil && strings.ContainsAny(name[:min(1, len(name))], "_#") {
				renamed(n.Value)
			}
		case *ast.LetClause:
			renamed(n.Expr)
		case *ast.ForClause:
			renamed(n.Source)
		case *ast.BinaryExpr:
			if _, absent := n.Y.(*ast.BottomLit); absent {
				goesOn[n.X] = true
			}
		case *ast.SelectorExpr:
			name, _, err := ast.LabelName(n.Sel)
			if err == nil {
				chain(n, n.X, name)
			}
		case *ast.IndexExpr:
			if name, ok := textOf(n.Index); ok {
				chain(n, n.X, name)
			}
		}
		return true
	}, nil)
	return nil
}

// parentName returns the last name of a chain, or "" if it has none, such as a list item or a
// renamed value.
func parentName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if name, _, err := ast.LabelName(x.Sel); err == nil {
			return name
		}
	case *ast.IndexExpr:
		name, _ := textOf(x.Index)
		return name
	case *ast.ParenExpr:
		return parentName(x.X)
	}
	return ""
}

func textOf(x ast.Expr) (string, bool) {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind.String() != "STRING" {
		return "", false
	}
	text, err := literal.Unquote(lit.Value)
	return text, err == nil
}

// isRead reports whether a field is read, and whether its children are, too.
func (s sourceReads) isRead(parent, name, goName string) (read, whole bool) {
	place := [2]string{parent, name}
	return s.selectedPairs[place] || s.selectedPairs[[2]string{"", name}] || s.goFieldNames[goName] || s.textParts[name], s.usedWholePairs[place]
}
