// Package unknown makes the errors about a name that does not exist: every command, flag and
// argument says it in the same words.
package unknown

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// Shown is the number of names that an error lists.
const Shown = 12

// mostGuesses is the number of names that an error suggests.
const mostGuesses = 3

// Name is an error for a name that does not exist: it says which names are close to it, and all
// names unless there are many.
func Name(what, name string, known []string) error {
	text := fmt.Sprintf("there is no %s %q%s", what, name, Hint(name, known))
	guessed := strings.HasSuffix(text, "?")
	switch rest := len(known) - Shown; {
	case len(known) == 0:
		return fmt.Errorf("%s: there is none", text)
	case guessed && rest > 0:
		return errors.New(text)
	case rest > 0:
		known = append(slices.Clone(known[:Shown]), fmt.Sprintf("%d more", rest))
	}
	return fmt.Errorf("%s; want one of %s", text, strings.Join(known, ", "))
}

// Hint suggests the names that are close to one, such as `; did you mean "seed/vpa" or
// "shoot/vpa"?`; empty if none is close.
func Hint(name string, known []string) string {
	near := Near(name, known)
	if len(near) == 0 {
		return ""
	}
	quoted := make([]string, len(near))
	for i, n := range near {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}

// Near gives the names that are most likely meant, at most three: a misspelt one, else those of
// which the name is only the last part ("vpa", "shoot/local"), or which are the last part of it
// ("components/seed/vpa").
func Near(name string, known []string) []string {
	parts := split(name)
	if guess := suggest.Word(name, known); guess != "" && isNear(parts, split(guess)) {
		return []string{guess}
	}
	if len(parts) == 0 {
		return nil
	}
	for _, fits := range []func(candidate []string) bool{
		func(candidate []string) bool { // "shoot local" is one in a namespace
			return len(parts) > 1 && len(candidate) > 1 && candidate[0] == parts[0] && last(candidate) == last(parts)
		},
		func(candidate []string) bool { return endsWith(parts, candidate) },
		func(candidate []string) bool { return endsWith(candidate, parts) },
		func(candidate []string) bool { return last(candidate) == last(parts) },
		func(candidate []string) bool { return suggest.Word(last(parts), []string{last(candidate)}) != "" },
	} {
		var near []string
		for _, candidate := range slices.Compact(slices.Sorted(slices.Values(known))) {
			if fits(split(candidate)) {
				near = append(near, candidate)
			}
		}
		same := slices.DeleteFunc(slices.Clone(near), func(candidate string) bool { return split(candidate)[0] != parts[0] })
		if len(same) > 0 {
			near = same // "shoot/locl" is a Shoot, not a Seed of nearly the same name
		}
		if len(near) > 0 {
			return near[:min(mostGuesses, len(near))]
		}
	}
	return nil
}

// isNear compares names of as many parts part by part: garden/nope is not garden/vpa, however much
// of the two is the same.
func isNear(parts, candidate []string) bool {
	for i := 0; len(parts) == len(candidate) && i < len(parts); i++ {
		if suggest.Word(parts[i], candidate[i:i+1]) == "" {
			return false
		}
	}
	return true
}

// split takes a name apart: "shoot garden-local/local" has three parts.
func split(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '/' || r == ' ' })
}

func last(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1]
}

func endsWith(parts, end []string) bool {
	return len(end) > 0 && len(parts) >= len(end) && slices.Equal(parts[len(parts)-len(end):], end)
}
