package custom

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/decls"
)

// Vocabulary is what expressions may use besides operators.
type Vocabulary struct {
	// Functions are the names of functions and methods, sorted.
	Functions []string
	// Macros are the names of what looks like a function and takes a variable, such as all, sorted.
	Macros []string
}

// Words gives the vocabulary of expressions. Functions that need an object which rules do not have
// (the API server's authorizer) are left out.
func Words() (Vocabulary, error) {
	env, err := newEnvironment()
	if err != nil {
		return Vocabulary{}, fmt.Errorf("set up the language of health rules: %w", err)
	}
	var v Vocabulary
	for name, function := range env.Functions() {
		if strings.ContainsAny(name, "@_!") || name == "in" || !callable(function) {
			continue
		}
		v.Functions = append(v.Functions, name)
	}
	for _, macro := range env.Macros() {
		v.Macros = append(v.Macros, macro.Function())
	}
	slices.Sort(v.Functions)
	slices.Sort(v.Macros)
	v.Macros = slices.Compact(v.Macros)
	return v, nil
}

// callable tells whether a function has a form without the types of the authorizer.
func callable(function *decls.FunctionDecl) bool {
	return slices.ContainsFunc(function.OverloadDecls(), func(o *decls.OverloadDecl) bool {
		args := o.ArgTypes()
		return len(args) == 0 || !strings.HasPrefix(args[0].TypeName(), "kubernetes.authorization.")
	})
}
