// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Rule judges objects of a kind. At least one of Healthy and Progressing is set; the built-in rule
// of the kind decides the other one.
type Rule struct {
	// APIGroup is the API group of the kind; empty is the core group. The rule applies to all
	// versions.
	APIGroup string
	// Kind is the kind of the objects.
	Kind string
	// Healthy is a CEL expression over `self` that yields a bool.
	Healthy string
	// Progressing is a CEL expression over `self` that yields a bool: whether a rollout is in
	// progress.
	Progressing string
	// Message is a CEL expression over `self` that yields a string. It is evaluated if the object
	// is not healthy or is progressing. Without it, a default sentence is used.
	Message string
}

const (
	// maxRules bounds a list of rules.
	maxRules = 256
	// maxExpression bounds an expression, in bytes.
	maxExpression = 4096
	// objectVariable is the name of the object.
	objectVariable = "self"
	// libraryMajor and libraryMinor are the Kubernetes version of the libraries.
	libraryMajor, libraryMinor = 1, 34
)

// RuleSet is a list of rules, ready to judge. It is safe for concurrent use. The zero value, and
// nil, have no rules.
type RuleSet struct {
	rules map[schema.GroupKind]*compiledRule
}

type compiledRule struct {
	healthy, progressing, message cel.Program
}

// Compile makes a Set. The error is of type Errors and has the errors of all rules.
func Compile(rules []Rule) (*RuleSet, error) {
	if len(rules) > maxRules {
		return nil, Errors{{Rule: maxRules, Field: "kind", Message: fmt.Sprintf("there are %d rules, and at most %d are allowed", len(rules), maxRules)}}
	}
	set := &RuleSet{rules: map[schema.GroupKind]*compiledRule{}}
	if len(rules) == 0 {
		return set, nil
	}
	env, err := newEnvironment()
	if err != nil {
		return nil, fmt.Errorf("setting up the language of health rules: %w", err)
	}
	var errs Errors
	for i, r := range rules {
		c, wrong := compileRule(env, i, r)
		gk := schema.GroupKind{Group: r.APIGroup, Kind: r.Kind}
		if _, twice := set.rules[gk]; twice {
			wrong = append(wrong, &Error{Rule: i, Field: "kind", Message: fmt.Sprintf("a rule for %s already exists: merge the two", kindName(gk))})
		}
		errs = append(errs, wrong...)
		set.rules[gk] = c
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return set, nil
}

func newEnvironment() (*cel.Env, error) {
	libraries := version.MajorMinor(libraryMajor, libraryMinor)
	set, err := environment.MustBaseEnvSet(libraries).Extend(environment.VersionedOptions{
		IntroducedVersion: libraries,
		EnvOptions:        []cel.EnvOption{cel.Variable(objectVariable, cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.NewExpressionsEnv(), nil
}

func compileRule(env *cel.Env, index int, r Rule) (*compiledRule, Errors) {
	var errs Errors
	fail := func(field, format string, args ...any) {
		errs = append(errs, &Error{Rule: index, Field: field, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case r.Kind == "":
		fail("kind", "is required: name the kind that the rule is for")
	case r.APIGroup == "" && r.Kind == "Secret":
		fail("kind", "a rule cannot judge Secrets: their values must not appear in messages")
	}
	if strings.Contains(r.APIGroup, "/") {
		fail("apiGroup", "%q has a version: a rule is for all versions of a group", r.APIGroup)
	}
	if r.Healthy == "" && r.Progressing == "" {
		fail("healthy", "is required unless progressing is given")
	}
	c := &compiledRule{}
	for _, e := range []struct {
		field, text string
		want        *cel.Type
		to          *cel.Program
	}{
		{"healthy", r.Healthy, cel.BoolType, &c.healthy},
		{"progressing", r.Progressing, cel.BoolType, &c.progressing},
		{"message", r.Message, cel.StringType, &c.message},
	} {
		if e.text == "" {
			continue
		}
		program, wrong := compileExpression(env, e.text, e.want)
		for _, w := range wrong {
			w.Rule, w.Field = index, e.field
		}
		errs = append(errs, wrong...)
		*e.to = program
	}
	return c, errs
}

func compileExpression(env *cel.Env, text string, want *cel.Type) (_ cel.Program, errs Errors) {
	defer func() {
		// The compiler is foreign code; a landscape must not crash the program.
		if r := recover(); r != nil {
			errs = Errors{{Message: fmt.Sprintf("the expression cannot be compiled: %v", r)}}
		}
	}()
	if len(text) > maxExpression {
		return nil, Errors{{Message: fmt.Sprintf("has %d bytes, and at most %d are allowed", len(text), maxExpression)}}
	}
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		for _, e := range issues.Errors() {
			errs = append(errs, &Error{Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: e.Message})
		}
		return nil, errs
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, Errors{{Line: 1, Column: 1, Message: fmt.Sprintf("yields %s, expected %s", got, want)}}
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, Errors{{Message: fmt.Sprintf("the expression cannot be used: %v", err)}}
	}
	return program, nil
}

func kindName(gk schema.GroupKind) string {
	if gk.Group == "" {
		return gk.Kind
	}
	return gk.Kind + "." + gk.Group
}
