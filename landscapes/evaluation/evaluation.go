// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"

	"github.com/pergola-dev/pergola/schemas"
)

// RuleCUE is the rule id of findings about CUE files.
const RuleCUE = "landscape/cue"

// Evaluator evaluates CUE packages. It is safe for concurrent use.
type Evaluator interface {
	// Evaluate returns the objects and violations of a package. An error means that the evaluation
	// failed for reasons outside the package; it is ctx.Err() soon after ctx ends.
	Evaluate(ctx context.Context, pkg Package) (Result, error)
}

// Package is a set of at least one CUE file to evaluate together. It can import only packages of
// CUE itself.
type Package struct {
	Files []File `json:"files"`
	// MaxDepth is the deepest nesting of values; the default is 64.
	MaxDepth int `json:"depth"`
	// MaxValues is the largest number of values in the objects of the package; the default is
	// 200,000.
	MaxValues int `json:"values"`
}

// File is a CUE file. Places contain its name.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Result is the result of a package. If it has violations, objects may be missing.
type Result struct {
	// Objects are values with apiVersion and kind, in the order of the package.
	Objects []*Value `json:"objects,omitempty"`
	// Violations are errors with their place; File is the name of a file of the package.
	Violations []schemas.Violation `json:"violations,omitempty"`
}

// Kind is the type of a Value.
type Kind string

// The kinds of values. All except maps and lists have their content as text, so that nothing is
// lost in transfer.
const (
	Map    Kind = "map"
	List   Kind = "list"
	String Kind = "string"
	Int    Kind = "int"   // fits 64 bits
	Float  Kind = "float" // fits 64 bits
	Bool   Kind = "bool"
	Null   Kind = "null"
)

// Value is a concrete value with the place where it is written.
type Value struct {
	Kind Kind `json:"k"`
	// File is the index of the file in the package.
	File   int               `json:"f,omitempty"`
	Line   int               `json:"l,omitempty"`
	Column int               `json:"c,omitempty"`
	Text   string            `json:"t,omitempty"`
	Fields map[string]*Value `json:"m,omitempty"`
	Items  []*Value          `json:"i,omitempty"`
}

// InProcess evaluates in this process, for trusted files and tests. When ctx ends, the evaluation
// continues in the background, because nothing can stop it.
type InProcess struct{}

// Evaluate implements Evaluator.
func (InProcess) Evaluate(ctx context.Context, pkg Package) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	done := make(chan Result, 1)
	go func() { done <- evaluate(pkg) }()
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}
