// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"strings"
)

// Error is an invalid rule with its position.
type Error struct {
	// Rule is the index in the list of rules.
	Rule int
	// Field is the field of the rule: kind, healthy, progressing or message.
	Field string
	// Line and Column are the line and the column in the expression, both from 1; it is 0 for the
	// field as a whole.
	Line, Column int
	// Message says what is wrong and how to fix it.
	Message string
}

// Error returns position and message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("rules[%d].%s: %s", e.Rule, e.Field, e.Message)
	}
	return fmt.Sprintf("rules[%d].%s:%d:%d: %s", e.Rule, e.Field, e.Line, e.Column, e.Message)
}

// Errors are all errors of a list of rules, in its order.
type Errors []*Error

// Error returns one line per error.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, err := range e {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	out := make([]error, 0, len(e))
	for _, err := range e {
		out = append(out, err)
	}
	return out
}
