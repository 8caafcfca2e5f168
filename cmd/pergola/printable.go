package main

import (
	"strings"

	texts "github.com/pergola-dev/pergola/internal/printable"
)

// printable makes a text that comes from a cluster or a commit one line, without characters that a
// terminal obeys.
func printable(s string) string { return texts.Line(s) }

// oneLine is that in no more than so many characters.
func oneLine(s string, limit int) string { return texts.Cut(s, limit) }

// printableText does so to a text whose lines stay.
func printableText(s string) string { return texts.Text(s) }

// printableLines does so to each line; all but the first are indented, so that none looks like one
// of the program.
func printableLines(s string) string {
	return strings.ReplaceAll(printableText(strings.TrimRight(s, "\n")), "\n", "\n  ")
}

func plural(n int, one, many string) string { return texts.Plural(n, one, many) }
func counted(n int, one string) string      { return texts.Counted(n, one) }
