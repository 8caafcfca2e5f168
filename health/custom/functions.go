// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/decls"
)

// Vocabulary has the names that expressions may use besides operators.
type Vocabulary struct {
	// Functions are the names of functions and methods, sorted.
	Functions []string
	// Macros are the sorted names of macros: functions that take a variable, such as all.
	Macros []string
}

// ExpressionVocabulary returns the vocabulary of expressions, without functions that need an object
// which rules do not have (the API server's authorizer).
func ExpressionVocabulary() (Vocabulary, error) {
	env, err := newEnvironment()
	if err != nil {
		return Vocabulary{}, fmt.Errorf("setting up the language of health rules: %w", err)
	}
	var v Vocabulary
	for name, function := range env.Functions() {
		if strings.ContainsAny(name, "@_!") || name == "in" || !isCallable(function) {
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

// isCallable reports whether a function has an overload without the types of the authorizer.
func isCallable(function *decls.FunctionDecl) bool {
	return slices.ContainsFunc(function.OverloadDecls(), func(o *decls.OverloadDecl) bool {
		args := o.ArgTypes()
		return len(args) == 0 || !strings.HasPrefix(args[0].TypeName(), "kubernetes.authorization.")
	})
}
