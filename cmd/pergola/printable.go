// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	texts "github.com/pergola-dev/pergola/internal/printable"
)

// printable turns a text of a cluster or a commit into one line without terminal control
// characters.
func printable(s string) string { return texts.Line(s) }

// oneLine is printable with at most limit characters.
func oneLine(s string, limit int) string { return texts.Truncate(s, limit) }

// printableText is printable for several lines.
func printableText(s string) string { return texts.MultiLine(s) }

// printableLines is printableText with all lines but the first indented, because they must not look
// like lines of the program.
func printableLines(s string) string {
	return strings.ReplaceAll(printableText(strings.TrimRight(s, "\n")), "\n", "\n  ")
}

func pluralForm(n int, one, many string) string { return texts.Plural(n, one, many) }
func countText(n int, one string) string        { return texts.WithCount(n, one) }
