// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxExamplePaths is the number of example paths for comparing two rules.
const maxExamplePaths = 200

// isSupersetOf reports whether one path_regex matches all paths of another one; nil matches
// everything. There is no general algorithm for it, so it tests one with example paths of the
// other. The random seed is fixed.
func isSupersetOf(one, other *regexp.Regexp) bool {
	if one == nil || other == nil {
		return one == nil
	}
	parsed, err := syntax.Parse(other.String(), syntax.Perl)
	if err != nil {
		return false
	}
	random := rand.New(rand.NewPCG(1, 2))
	made := 0
	for range maxExamplePaths {
		// An expression without ^ or $ also matches text before or after it.
		path := pickText(random, "", "", "a/", "q.x/b-1/") + examplePath(parsed, random) + pickText(random, "", "", "a", ".txt", "/b.yml")
		switch {
		case !other.MatchString(path):
		case !one.MatchString(path):
			return false
		default:
			made++
		}
	}
	return made > maxExamplePaths/20
}

func pickText(random *rand.Rand, texts ...string) string { return texts[random.IntN(len(texts))] }

// examplePath generates a text that an expression most likely matches, from its parts alone.
func examplePath(e *syntax.Regexp, random *rand.Rand) string {
	times := 1
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return pickText(random, "a", "z", "7", "-", ".", "/")
	case syntax.OpCharClass:
		// A range may contain nearly all characters: try those of paths first.
		for range 20 {
			if c := rune(pickText(random, "a", "m", "z", "A", "0", "5", "-", "_", ".", "/")[0]); isInClass(e.Rune, c) {
				return string(c)
			}
		}
		if len(e.Rune) > 0 {
			return string(e.Rune[0])
		}
	case syntax.OpAlternate:
		return examplePath(e.Sub[random.IntN(len(e.Sub))], random)
	case syntax.OpQuest:
		times = random.IntN(2)
	case syntax.OpStar:
		times = random.IntN(4)
	case syntax.OpPlus:
		times = 1 + random.IntN(3)
	case syntax.OpRepeat:
		times = e.Min
		if e.Max != e.Min {
			times += random.IntN(3)
		}
	}
	var out strings.Builder
	for range times {
		for _, sub := range e.Sub {
			out.WriteString(examplePath(sub, random))
		}
	}
	return out.String()
}

// isInClass reports whether a character is in one of the ranges.
func isInClass(ranges []rune, c rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= c && c <= ranges[i+1] {
			return true
		}
	}
	return false
}
