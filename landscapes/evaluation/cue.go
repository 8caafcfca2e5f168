// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"

	"github.com/pergola-dev/pergola/schemas"
)

// evaluate returns the objects of a package.
func evaluate(pkg Package) (result Result) {
	r := newObjectReader(pkg)
	// The evaluator panics on some invalid input, which must not end a run over many files.
	defer func() {
		if recover() != nil {
			result = failedResult(pkg, "the CUE evaluator failed on this package; simplify it")
		}
	}()
	instance := build.NewContext().NewInstance("landscape", nil)
	for _, file := range pkg.Files {
		syntax, err := parser.ParseFile(file.Name, file.Data, parser.ParseComments)
		if err != nil {
			r.reportAll(file.Name, err)
			return r.result
		}
		r.syntax = append(r.syntax, syntax)
		if imports, attributes := r.checkImports(file.Name, syntax), r.checkAttributes(file.Name, syntax); !imports || !attributes {
			return r.result
		}
		if err := instance.AddSyntax(syntax); err != nil {
			r.reportAll(file.Name, err)
			return r.result
		}
	}
	if err := instance.Complete(); err != nil {
		r.reportAll(pkg.Files[0].Name, err)
		return r.result
	}
	value := cuecontext.New().BuildInstance(instance)
	if err := value.Err(); err != nil {
		r.reportAll(pkg.Files[0].Name, err)
		return r.result
	}
	r.collect(value, position{line: 1, column: 1}, 0)
	return r.result
}

// failedResult returns the result of a package that cannot be evaluated.
func failedResult(pkg Package, message string) Result {
	return Result{Violations: []schemas.Violation{{
		Severity: schemas.SeverityError, File: pkg.Files[0].Name, Line: 1, Column: 1,
		Type: schemas.TypeInvalid, Rule: RuleCUE, Message: message,
	}}}
}

// checkImports allows the CUE standard library except packages with side effects.
func (r *objectReader) checkImports(name string, file *ast.File) bool {
	allowed := true
	for spec := range file.ImportSpecs() {
		importPath, err := strconv.Unquote(spec.Path.Value)
		first, _, _ := strings.Cut(importPath, "/")
		if err != nil || strings.Contains(first, ".") || first == "tool" {
			at := spec.Pos().Position()
			r.report(name, at.Line, at.Column, schemas.TypeForbidden, "%s must not be imported: declarations use only the CUE standard library", spec.Path.Value)
			allowed = false
		}
	}
	return allowed
}
