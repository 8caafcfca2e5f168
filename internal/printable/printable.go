// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts from clusters, commits and files safe to print: their authors must
// not control the reader's terminal or imitate other output. It is for text that commands print,
// and for text in a status or report that commands print later.
//
// Two kinds of text are handled elsewhere. Packages plan and schemas spell such characters out in
// differences and findings. Packages source, source/receiver, source/forge and
// controllers/notification truncate text for other machines.
package printable

import (
	"strings"
	"unicode"
)

// Line returns a text as one line. It replaces line breaks, tabs, and control, bidirectional and
// invisible characters by a space each.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// Truncate is Line with single spaces between words and at most limit characters; "…" marks a cut.
func Truncate(s string, limit int) string {
	s = strings.Join(strings.Fields(Line(s)), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// MultiLine is Line for a text of several lines: it keeps line breaks and tabs. The caller
// separates these lines from those of the program.
func MultiLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
