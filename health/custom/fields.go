package custom

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Field is a field of the object that an expression reads.
type Field struct {
	// Path goes from the object down to where the expression takes an item or calls a function.
	Path []string
	// Compared is the literal that the field is compared with: a string, a bool, an int64, a uint64 or a float64; nil if there is none.
	Compared any
}

// Fields are the fields of the object that an expression reads. An expression that does not compile has none.
func Fields(expression string) []Field {
	env, err := newEnvironment()
	if err != nil || len(expression) > maxExpression {
		return nil
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	var out []Field
	celast.PostOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if path := selected(e); len(path) > 0 {
			out = append(out, Field{Path: path})
		}
		if e.Kind() == celast.CallKind {
			out = append(out, comparisons(e.AsCall())...)
		}
	}))
	return out
}

// comparisons are the fields that a call compares with literals.
func comparisons(call celast.CallExpr) []Field {
	args := call.Args()
	if len(args) != 2 {
		return nil
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
		return nil
	}
	var out []Field
	for _, pair := range pairs {
		if path := selected(pair[0]); len(path) > 0 && pair[1].Kind() == celast.LiteralKind {
			out = append(out, Field{Path: path, Compared: pair[1].AsLiteral().Value()})
		}
	}
	return out
}

// selected is the path of fields that an expression selects, nil if it begins elsewhere than at the object.
func selected(e celast.Expr) []string {
	switch e.Kind() {
	case celast.IdentKind:
		if e.AsIdent() == variable {
			return []string{}
		}
	case celast.SelectKind:
		if path := selected(e.AsSelect().Operand()); path != nil {
			return append(slices.Clone(path), e.AsSelect().FieldName())
		}
	}
	return nil
}
