package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// InvalidError says that a landscape asks for something that cannot be rendered: everything that
// was found, each with its place.
type InvalidError struct{ Violations []schemas.Violation }

func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Violations))
	for _, v := range e.Violations {
		lines = append(lines, v.String())
	}
	return strings.Join(lines, "\n")
}

// invalid is an InvalidError of the errors among violations, nil when there are none.
func invalid(violations []schemas.Violation) error {
	if !schemas.HasErrors(violations) {
		return nil
	}
	return &InvalidError{Violations: violations}
}

// Rules of the findings about what a landscape asks of the catalogue.
const (
	ruleCatalogue   = "landscape/catalogue"
	ruleImage       = "landscape/image"
	ruleSkew        = "landscape/gardenlet-version"
	ruleOverlay     = "landscape/overlay"
	ruleObject      = "landscape/object"
	ruleOverlayPath = "landscape/overlay-path"
	ruleOverlayItem = "landscape/overlay-item"
	// ruleOverlayReference is for what objects name.
	ruleOverlayReference = "landscape/overlay-reference"
	ruleFacts            = "landscape/facts"
	ruleBinding          = "landscape/binding"
	ruleVersion          = "landscape/kubernetes-version"
	ruleCluster          = "landscape/cluster-name"
	ruleHealthFields     = "landscape/health-fields"
	ruleNeeded           = "landscape/component-needed"
	ruleAwaited          = "landscape/component-awaited"
)

// finding is something wrong at a place of a file.
type finding struct {
	schemas.Position
	field   string
	kind    schemas.Type
	message string
	// rule is set where a landscape is wrong, and not the catalogue.
	rule string
	// object is the one that the finding is about, where it is a declaration.
	object identity
	// warning says that it may be meant like that.
	warning bool
}

type identity struct{ kind, namespace, name string }

func (f finding) Error() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, max(f.Column, 1))
		}
		b.WriteString(": ")
	}
	if f.object.kind != "" {
		b.WriteString(f.object.kind + " " + path.Join(f.object.namespace, f.object.name) + ": ")
	}
	if f.field != "" && b.Len() > 0 {
		b.WriteString(f.field + ": ")
	}
	return b.String() + f.message
}

// violation is the finding as a command shows it.
func (f finding) violation() schemas.Violation {
	severity := schemas.SeverityError
	if f.warning {
		severity = schemas.SeverityWarning
	}
	return schemas.Violation{
		Severity: severity, File: f.File, Line: max(f.Line, 1), Column: max(f.Column, 1),
		Kind: f.object.kind, Namespace: f.object.namespace, Name: f.object.name,
		Field: f.field, Type: f.kind, Rule: f.rule, Message: f.message,
	}
}

// findings are an error each.
type findings []finding

func (list findings) err() error {
	errs := make([]error, 0, len(list))
	for _, f := range list {
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

// ruled gives all findings in an error that have no rule one; another error stays as it is.
func ruled(err error, rule string) error {
	found := findingsIn(err)
	if len(found) == 0 {
		return err
	}
	for i := range found {
		if found[i].rule == "" {
			found[i].rule = rule
		}
	}
	return found.err()
}

// findingsIn takes the findings out of an error, wherever in it they are.
func findingsIn(err error) findings {
	if f, ok := err.(finding); ok {
		return findings{f}
	}
	switch wrapped := err.(type) {
	case interface{ Unwrap() error }:
		return findingsIn(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		var out findings
		for _, inner := range wrapped.Unwrap() {
			out = append(out, findingsIn(inner)...)
		}
		return out
	}
	return nil
}

// sortedViolations are in the order of their places, each once.
func sortedViolations(violations []schemas.Violation) []schemas.Violation {
	schemas.Sort(violations)
	return slices.Compact(violations)
}
