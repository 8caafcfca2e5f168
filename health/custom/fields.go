package custom

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
)

// Fields are the fields of the object that an expression reads, as paths from the object down to where it takes an item or calls a function. An
// expression that does not compile has none.
func Fields(expression string) [][]string {
	env, err := newEnvironment()
	if err != nil || len(expression) > maxExpression {
		return nil
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	var out [][]string
	celast.PostOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if path := selected(e); len(path) > 0 {
			out = append(out, path)
		}
	}))
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
