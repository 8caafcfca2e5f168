// Package printable makes texts that come from a cluster, a commit or a file fit to be shown:
// whoever may write one of them must not command the terminal of the reader, nor write what looks
// like the rest of the output. What commands print goes through here, and what stands in a status
// or a report for them. Not here: values in differences and findings, which spell such characters
// out (packages plan and schemas), and what is cut to a length for other machines (source,
// source/receiver, source/forge, controllers/notification).
package printable

import (
	"strings"
	"unicode"
)

// Line gives a text as one line: characters that a terminal obeys, that turn others around or that
// hide are a space each, line breaks and tabs as well.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// Cut is Line with a single space between words, and no more than so many characters: a sign says
// that there are more.
func Cut(s string, limit int) string {
	s = strings.Join(strings.Fields(Line(s)), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// Text does what Line does to a text of several lines. Line breaks and tabs stay: whoever prints it
// sets its lines off from those of the program.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
