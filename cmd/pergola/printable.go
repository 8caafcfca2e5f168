package main

import (
	"strings"
	"unicode"
)

// printable makes a text that comes from a cluster or a commit one line without characters that a terminal obeys, or that turn or hide others:
// whoever may write it must not write the rest of what is shown.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// printableLines does so for each line; all but the first are indented, so that none looks like one of the program.
func printableLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n  ")
}
