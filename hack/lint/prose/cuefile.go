// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// checkCUE checks the comments and the string literals of a CUE file.
func checkCUE(file string, raw []byte) ([]finding, error) {
	parsed, err := parser.ParseFile(file, raw)
	if err != nil {
		return nil, err
	}
	out := checkComments(file, raw, "//")
	add := func(n ast.Node, text string) {
		for _, p := range splitMessage(file, n.Pos().Line(), text) {
			out = append(out, p.check()...)
		}
	}
	ast.Walk(parsed, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ImportDecl, *ast.Attribute:
			return false
		case *ast.Interpolation:
			add(x, interpolatedText(x))
			return false
		case *ast.BasicLit:
			if text, err := literal.Unquote(x.Value); x.Kind == token.STRING && err == nil {
				add(x, text)
			}
		}
		return true
	}, nil)
	return out, nil
}

// interpolatedText returns the text of a literal, with %v for each expression.
func interpolatedText(x *ast.Interpolation) string {
	text := ""
	quotes, _, _, err := literal.ParseQuotes(x.Elts[0].(*ast.BasicLit).Value, x.Elts[len(x.Elts)-1].(*ast.BasicLit).Value)
	if err != nil {
		return ""
	}
	for i, part := range x.Elts {
		if i%2 == 1 {
			text += "%v"
			continue
		}
		value := part.(*ast.BasicLit).Value
		if i == 0 {
			value = value[len(`"`):]
		}
		if s, err := quotes.Unquote(strings.TrimPrefix(value, ")")); err == nil {
			text += s
		}
	}
	return text
}
