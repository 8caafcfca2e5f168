// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"maps"
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Field is a field of the object that an expression reads.
type Field struct {
	// Path goes from the object to the first function call. AnyItem is the step into a list or map
	// that a macro, such as exists, iterates.
	Path []string
	// Literal is the literal that the field is compared with, or nil: a string, a bool, an int64,
	// a uint64 or a float64.
	Literal any
	// IsWholeExpression reports whether the field is the whole expression, so its value is the
	// result.
	IsWholeExpression bool
}

// AnyItem is the step from a list or map to its items.
const AnyItem = "[]"

// Fields returns the fields of the object that an expression reads. An expression that does not
// compile has none.
func Fields(expression string) []Field {
	env, err := newEnvironment()
	if err != nil || len(expression) > maxExpression {
		return nil
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	r := fieldReader{}
	r.walkExpression(celast.NavigateAST(parsed.NativeRep()), map[string][]string{objectVariable: {}}, true)
	return r.found
}

// fieldReader finds the fields that an expression reads.
type fieldReader struct{ found []Field }

// walkExpression visits an expression and its parts; variables maps names to their paths.
func (r *fieldReader) walkExpression(e celast.NavigableExpr, variables map[string][]string, whole bool) {
	switch e.Kind() {
	case celast.ComprehensionKind:
		if path := selectedPath(e.AsComprehension().IterRange(), variables); len(path) > 0 {
			variables = maps.Clone(variables)
			variables[e.AsComprehension().IterVar()] = append(path, AnyItem)
		}
	case celast.CallKind:
		r.readComparisons(e.AsCall(), variables)
	}
	if path := selectedPath(e, variables); len(path) > 0 {
		r.found = append(r.found, Field{Path: path, IsWholeExpression: whole})
	}
	for _, child := range e.Children() {
		r.walkExpression(child, variables, false)
	}
}

// readComparisons finds the fields that a call compares with literals.
func (r *fieldReader) readComparisons(call celast.CallExpr, variables map[string][]string) {
	args := call.Args()
	if len(args) != 2 {
		return
	}
	pairs := [][2]celast.Expr{{args[0], args[1]}, {args[1], args[0]}}
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
	case operators.In:
		pairs = nil
		if args[1].Kind() == celast.ListKind {
			for _, item := range args[1].AsList().Elements() {
				pairs = append(pairs, [2]celast.Expr{args[0], item})
			}
		}
	default:
		return
	}
	for _, pair := range pairs {
		if path := selectedPath(pair[0], variables); len(path) > 0 && pair[1].Kind() == celast.LiteralKind {
			r.found = append(r.found, Field{Path: path, Literal: pair[1].AsLiteral().Value()})
		}
	}
}

// selectedPath returns the field path of an expression, or nil if it does not start at the object.
func selectedPath(e celast.Expr, variables map[string][]string) []string {
	switch e.Kind() {
	case celast.IdentKind:
		if path, known := variables[e.AsIdent()]; known {
			return slices.Clone(path)
		}
	case celast.SelectKind:
		if path := selectedPath(e.AsSelect().Operand(), variables); path != nil {
			return append(slices.Clone(path), e.AsSelect().FieldName())
		}
	}
	return nil
}
