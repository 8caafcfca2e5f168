// SPDX-License-Identifier: Apache-2.0

// Package suggest guesses which name a misspelt word means.
package suggest

import (
	"slices"
	"strings"
)

// Closest returns the candidate that a misspelt word most likely means. It is the same word in
// another case, or at most one edit per three letters away; it is "" if none is close.
func Closest(word string, candidates []string) string {
	return ClosestWithin(word, candidates, max(1, len(word)/3))
}

// ClosestWithin is Word with another limit of edits. Among equally close candidates it returns the
// first by name.
func ClosestWithin(word string, candidates []string, limit int) string {
	best, bestDistance := "", limit+1
	small := strings.ToLower(word)
	for _, candidate := range candidates {
		// The distance is at least the difference in length, so most candidates need no comparison.
		if longer := len(candidate) - len(word); max(longer, -longer) > bestDistance {
			continue
		}
		d := 0
		if !strings.EqualFold(word, candidate) {
			d = editDistance(small, strings.ToLower(candidate))
		}
		if d < bestDistance || d == bestDistance && d <= limit && candidate < best {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// IsMisspelt reports whether a word surely means one of the names. It differs only in case, or by
// one edit if the name has more than 5 letters.
func IsMisspelt(word string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.EqualFold(word, name) || len(name) > 5 && editDistance(strings.ToLower(word), strings.ToLower(name)) == 1
	})
}

// editDistance counts the edits (insert, delete, replace, swap of neighbours) between two words.
func editDistance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
