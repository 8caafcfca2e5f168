// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Severity decides whether a finding stops a change.
type Severity string

const (
	// SeverityError is a finding that the Gardener API, or Pergola before it, rejects.
	SeverityError Severity = "error"
	// SeverityWarning is a finding that is accepted but most likely not wanted.
	SeverityWarning Severity = "warning"
)

// ViolationType is the kind of a finding, in the words of the API (k8s.io/apimachinery field
// errors).
type ViolationType string

const (
	// TypeRequired is a missing value.
	TypeRequired ViolationType = "Required"
	// TypeInvalid is a value of the right type that breaks a constraint.
	TypeInvalid ViolationType = "Invalid"
	// TypeNotSupported is a value that is not among the known ones.
	TypeNotSupported ViolationType = "NotSupported"
	// TypeForbidden is a field that must not be set: unknown, or not together with another one.
	TypeForbidden ViolationType = "Forbidden"
	// TypeDuplicate is a value that may be given only once.
	TypeDuplicate ViolationType = "Duplicate"
	// TypeTypeInvalid is a value of another type, such as text where a number is expected.
	TypeTypeInvalid ViolationType = "TypeInvalid"
	// TypeTooLong is text that is longer than allowed.
	TypeTooLong ViolationType = "TooLong"
	// TypeTooMany is a list or map with more items than allowed.
	TypeTooMany ViolationType = "TooMany"
)

// violationTypes lists all types.
var violationTypes = [...]ViolationType{TypeRequired, TypeInvalid, TypeNotSupported, TypeForbidden, TypeDuplicate, TypeTypeInvalid, TypeTooLong, TypeTooMany}

// Violation is one finding. Its JSON form is the contract of `pergola validate -o json`.
type Violation struct {
	Severity Severity `json:"severity"`
	// File, Line and Column are the position of the value, or of its closest written parent. Line
	// and Column start at 1; they are 0 if the position is unknown.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Kind, Namespace and Name identify the object; it is empty for findings about files.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Field is the path of the field, such as spec.provider.workers[0].name.
	Field string        `json:"field"`
	Type  ViolationType `json:"type"`
	// Rule is the id of the rule, listed by Rules, or "structure" for findings of the schema.
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// ActualField is the field that the finding is about, if Field is only upstream's index or name
	// for it; it is "" for Field itself.
	ActualField string `json:"-"`
	// NewOnly means that only new objects have the finding, not objects that had the value before.
	NewOnly bool `json:"-"`
}

// RuleStructure is the rule id of findings of the structural base.
const RuleStructure = "structure"

// String formats the finding in one printable line: position, severity, object, field, message and
// rule.
func (v Violation) String() string {
	var b strings.Builder
	if v.File != "" {
		b.WriteString(v.File)
		if v.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", v.Line, v.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(string(v.Severity))
	b.WriteString(": ")
	if v.Kind != "" {
		b.WriteString(v.Kind)
		b.WriteString(" ")
		if v.Namespace != "" {
			b.WriteString(v.Namespace + "/")
		}
		b.WriteString(v.Name + ": ")
	}
	if v.Field != "" {
		b.WriteString(v.Field + ": ")
	}
	b.WriteString(v.Message)
	if v.Rule != "" {
		b.WriteString(" [" + v.Rule + "]")
	}
	return escapeUnprintable(b.String())
}

// escapeUnprintable escapes characters that would move or colour a terminal: names and values come
// from files.
func escapeUnprintable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// SortViolations orders findings by position, then object, field, rule and message, so that output
// is stable.
func SortViolations(violations []Violation) {
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message),
		)
	})
}

// HasErrors reports whether one of the findings is an error.
func HasErrors(violations []Violation) bool {
	return slices.ContainsFunc(violations, func(v Violation) bool { return v.Severity == SeverityError })
}

// Position is a position in a file. Line and Column start at 1; the zero value means unknown.
type Position struct {
	File   string
	Line   int
	Column int
}

// Positioner finds the position of a field of one object.
type Positioner interface {
	// Position returns the position of the field, or of its closest written parent.
	Position(path string) Position
}

// keyPositioner is a Positioner that also knows the positions of the names of fields.
type keyPositioner interface {
	// KeyPosition returns the position of the name of a field instead of its value.
	KeyPosition(path string) Position
}

// findingPosition returns the position of a finding: of its name for a field that does not exist.
func findingPosition(positions Positioner, f finding) Position {
	path := cmp.Or(f.documentPath, f.path)
	if names, ok := positions.(keyPositioner); ok && (f.rule == RuleStructure || f.rule == ruleExtensionConfig) && f.typ == TypeForbidden {
		return names.KeyPosition(path)
	}
	return positions.Position(path)
}
