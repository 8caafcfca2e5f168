// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// InvalidError means that a landscape asks for something that cannot be rendered. It has all
// findings with their positions.
type InvalidError struct{ Violations []schemas.Violation }

func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Violations))
	for _, v := range e.Violations {
		lines = append(lines, v.String())
	}
	return strings.Join(lines, "\n")
}

// invalidError returns an InvalidError if violations have errors, else nil.
func invalidError(violations []schemas.Violation) error {
	if !schemas.HasErrors(violations) {
		return nil
	}
	return &InvalidError{Violations: violations}
}

// Rules of the findings about the use of the catalogue by a landscape.
const (
	ruleCatalogue   = "landscape/catalogue"
	ruleImage       = "landscape/image"
	ruleSkew        = "landscape/gardenlet-version"
	ruleOverlay     = "landscape/overlay"
	ruleObject      = "landscape/object"
	ruleOverlayPath = "landscape/overlay-path"
	ruleOverlayItem = "landscape/overlay-item"
	// ruleOverlayReference is for references between objects.
	ruleOverlayReference = "landscape/overlay-reference"
	ruleFacts            = "landscape/facts"
	ruleBinding          = "landscape/binding"
	ruleVersion          = "landscape/kubernetes-version"
	ruleCluster          = "landscape/cluster-name"
	ruleHealthFields     = "landscape/health-fields"
	ruleComponentNeeded  = "landscape/component-needed"
	ruleComponentAwaited = "landscape/component-awaited"
)

// finding is a fault at a position of a file.
type finding struct {
	schemas.Position
	field   string
	kind    schemas.ViolationType
	message string
	// rule is set if the fault is in a landscape, not in the catalogue.
	rule string
	// object is the object that the finding is about, if any.
	object objectIdentity
	// warning means that it may be intended.
	warning bool
}

type objectIdentity struct{ kind, namespace, name string }

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

// violation converts the finding for commands.
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

// findings convert to one error each.
type findings []finding

func (list findings) err() error {
	errs := make([]error, 0, len(list))
	for _, f := range list {
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

// withRule sets a rule on all findings in an error that have none; other errors stay unchanged.
func withRule(err error, rule string) error {
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

// findingsIn returns the findings in an error at any depth.
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

// sortedViolations sorts by position and removes duplicates.
func sortedViolations(violations []schemas.Violation) []schemas.Violation {
	schemas.SortViolations(violations)
	return slices.Compact(violations)
}
