// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/pergola-dev/pergola/change"
)

// Long values in one line, such as certificates in base64, are unreadable. Only the part with the
// difference is shown.

const (
	maxValueLength    = 240 // in runes; longer values are shortened
	valueWindowMargin = 24  // in runes, beside the difference
	windowWidth       = 120 // in runes, of the difference
)

// valuePair formats the old and new value of a field for comparison.
func valuePair(f change.Field) (old, new string) {
	old, new = formatValue(f.Old), formatValue(f.New)
	o, n := []rune(old), []rune(new)
	if max(len(o), len(n)) < maxValueLength || hasBreak(o) || hasBreak(n) {
		return old, new
	}
	same := 0
	for same < min(len(o), len(n)) && o[same] == n[same] {
		same++
	}
	from := max(0, same-valueWindowMargin)
	return valueWindow(o, from), valueWindow(n, from)
}

func hasBreak(s []rune) bool {
	for _, r := range s {
		if r == '\n' {
			return true
		}
	}
	return false
}

// valueWindow returns the part of a long value from a rune on, with the total length.
func valueWindow(s []rune, from int) string {
	if len(s) < maxValueLength {
		return string(s)
	}
	to := min(len(s), from+valueWindowMargin+windowWidth)
	text := string(s[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(s) {
		text += "…"
	}
	return text + fmt.Sprintf(" (%d characters)", len(s))
}
