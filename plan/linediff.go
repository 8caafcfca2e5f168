// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/hexops/gotextdiff"
	"github.com/hexops/gotextdiff/myers"

	"github.com/pergola-dev/pergola/change"
)

// lineDiff returns a line diff with three lines of context, without file names. An added or removed
// value has a sign on each line.
func lineDiff(f change.Field) []string {
	old, new := valuePair(f)
	if f.Old == nil || f.New == nil {
		sign, text := "-", old
		if f.Old == nil {
			sign, text = "+", new
		}
		return withSign(sign, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
	}
	if strings.HasSuffix(old, "\n") == strings.HasSuffix(new, "\n") {
		old, new = strings.TrimSuffix(old, "\n")+"\n", strings.TrimSuffix(new, "\n")+"\n"
	}
	return diffLines(splitLines(old), splitLines(new))
}

const (
	// contextLines is the number of unchanged lines around a difference.
	contextLines = 3
	// maxComparedLines is the largest number of different lines in a line diff: time and memory are
	// quadratic.
	maxComparedLines = 1000
)

// diffLines compares lines without their common start and end. If there are too many, it returns
// them as one replacement.
func diffLines(o, n []string) []string {
	begin, end := 0, 0
	for begin < min(len(o), len(n)) && o[begin] == n[begin] {
		begin++
	}
	for end < min(len(o), len(n))-begin && o[len(o)-1-end] == n[len(n)-1-end] {
		end++
	}
	if inner := o[begin : len(o)-end]; len(inner)+len(n)-end-begin > maxComparedLines {
		other := n[begin : len(n)-end]
		lines := []string{fmt.Sprintf("@@ -%d,%d +%d,%d @@", begin+1, len(inner), begin+1, len(other))}
		return append(append(lines, withSign("-", withoutLineEnds(inner))...), withSign("+", withoutLineEnds(other))...)
	}
	begin, end = max(0, begin-contextLines), max(0, end-contextLines)
	old, new := strings.Join(o[begin:len(o)-end], ""), strings.Join(n[begin:len(n)-end], "")
	unified := gotextdiff.ToUnified("old", "new", old, myers.ComputeEdits("", old, new))
	for _, hunk := range unified.Hunks {
		hunk.FromLine += begin
		hunk.ToLine += begin
	}
	lines := strings.Split(strings.TrimSuffix(fmt.Sprint(unified), "\n"), "\n")
	return lines[min(2, len(lines)):] // without the names
}

// splitLines returns the lines of a text with their line ends.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func withoutLineEnds(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	return out
}

func withSign(sign string, lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, sign+line)
	}
	return out
}
