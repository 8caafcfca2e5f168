// SPDX-License-Identifier: Apache-2.0

// Package unknown creates the errors about names that do not exist, so that all commands, flags and
// arguments use the same words.
package unknown

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// MaxListed is the maximum number of names that an error lists.
const MaxListed = 12

// maxSuggestions is the maximum number of names that an error suggests.
const maxSuggestions = 3

// NameError returns an error for a name that does not exist. It suggests similar names, and lists
// all names unless there are many.
func NameError(what, name string, known []string) error {
	text := fmt.Sprintf("there is no %s %q%s", what, name, Hint(name, known))
	guessed := strings.HasSuffix(text, "?")
	switch rest := len(known) - MaxListed; {
	case len(known) == 0:
		return fmt.Errorf("%s: there is none", text)
	case guessed && rest > 0:
		return errors.New(text)
	case rest > 0:
		known = append(slices.Clone(known[:MaxListed]), fmt.Sprintf("%d more", rest))
	}
	return fmt.Errorf("%s; want one of %s", text, strings.Join(known, ", "))
}

// Hint suggests the names that are close to a name, such as `; did you mean "seed/vpa" or
// "shoot/vpa"?`; it is empty if none is close.
func Hint(name string, known []string) string {
	near := Similar(name, known)
	if len(near) == 0 {
		return ""
	}
	quoted := make([]string, len(near))
	for i, n := range near {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}

// Similar returns the names that are most likely meant, at most three. The candidates are a
// misspelt name, names that end with it ("vpa", "shoot/local"), and names that it ends with
// ("components/seed/vpa").
func Similar(name string, known []string) []string {
	parts := nameParts(name)
	if guess := suggest.Closest(name, known); guess != "" && isSimilar(parts, nameParts(guess)) {
		return []string{guess}
	}
	if len(parts) == 0 {
		return nil
	}
	for _, fits := range []func(candidate []string) bool{
		func(candidate []string) bool { // "shoot local" is a Shoot in a namespace
			return len(parts) > 1 && len(candidate) > 1 && candidate[0] == parts[0] && lastPart(candidate) == lastPart(parts)
		},
		func(candidate []string) bool { return hasSuffix(parts, candidate) },
		func(candidate []string) bool { return hasSuffix(candidate, parts) },
		func(candidate []string) bool { return lastPart(candidate) == lastPart(parts) },
		func(candidate []string) bool {
			return suggest.Closest(lastPart(parts), []string{lastPart(candidate)}) != ""
		},
	} {
		var near []string
		for _, candidate := range slices.Compact(slices.Sorted(slices.Values(known))) {
			if fits(nameParts(candidate)) {
				near = append(near, candidate)
			}
		}
		same := slices.DeleteFunc(slices.Clone(near), func(candidate string) bool { return nameParts(candidate)[0] != parts[0] })
		if len(same) > 0 {
			near = same // "shoot/locl" is a Shoot, not a Seed of nearly the same name
		}
		if len(near) > 0 {
			return near[:min(maxSuggestions, len(near))]
		}
	}
	return nil
}

// isSimilar compares names with the same number of parts part by part: garden/nope is not
// garden/vpa, even if most letters are the same.
func isSimilar(parts, candidate []string) bool {
	for i := 0; len(parts) == len(candidate) && i < len(parts); i++ {
		if suggest.Closest(parts[i], candidate[i:i+1]) == "" {
			return false
		}
	}
	return true
}

// nameParts splits a name into its parts: "shoot garden-local/local" has three.
func nameParts(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '/' || r == ' ' })
}

func lastPart(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1]
}

func hasSuffix(parts, end []string) bool {
	return len(end) > 0 && len(parts) >= len(end) && slices.Equal(parts[len(parts)-len(end):], end)
}
