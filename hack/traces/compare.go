// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var repeatCountSuffixPattern = regexp.MustCompile(` \(\d+ times\)$`)

// compare returns a text for each object whose lines differ from its lines in all recordings of
// before: the differences from the first one. It ignores how often a line repeats, which depends on
// timing.
func compare(before []traces, after traces) (out []string) {
	all := maps.Clone(after)
	for _, t := range before {
		maps.Copy(all, t)
	}
	for _, name := range sortedKeys(all) {
		was, is := before[0][name], withoutRepeatCounts(after[name])
		if slices.ContainsFunc(before, func(t traces) bool { return slices.Equal(withoutRepeatCounts(t[name]), is) }) {
			continue
		}
		switch {
		case len(was) == 0:
			name += ": only in the new one"
		case len(is) == 0:
			name += ": only in the old one"
		}
		out = append(out, name+"\n  "+strings.Join(diffLines(withoutRepeatCounts(was), is), "\n  "))
	}
	return out
}

func withoutRepeatCounts(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, repeatCountSuffixPattern.ReplaceAllString(line, ""))
	}
	return out
}

// diffLines returns the lines outside of the longest common subsequence, after - (old) or + (new).
// If one line replaces another of the same verb, it shows only the verb and the words that differ.
func diffLines(old, new []string) (out []string) {
	common := make([][]int, len(old)+1)
	for i := range common {
		common[i] = make([]int, len(new)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); old[i] == new[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var less, more []string
	flush := func() {
		if len(less) == 1 && len(more) == 1 && strings.Contains(less[0], " ") {
			a, b := strings.Fields(less[0]), strings.Fields(more[0])
			if a[0] == b[0] {
				less, more = []string{a[0] + " … " + wordsWithout(a, b)}, []string{b[0] + " … " + wordsWithout(b, a)}
			}
		}
		for _, line := range less {
			out = append(out, "- "+line)
		}
		for _, line := range more {
			out = append(out, "+ "+line)
		}
		less, more = nil, nil
	}
	for i, j := 0, 0; i < len(old) || j < len(new); {
		switch {
		case i < len(old) && j < len(new) && old[i] == new[j]:
			flush()
			i, j = i+1, j+1
		case j == len(new) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			less = append(less, old[i])
			i++
		default:
			more = append(more, new[j])
			j++
		}
	}
	flush()
	return out
}

func wordsWithout(words, others []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(others, w) }), " ")
}
