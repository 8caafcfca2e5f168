package schemas

import "github.com/pergola-dev/pergola/schemas/structure"

// Suggest gives the candidate that a misspelt word most likely means, or "".
func Suggest(word string, candidates []string) string { return structure.Suggest(word, candidates) }

// SuggestWithin gives the candidate that is at most so many edits away, or "".
func SuggestWithin(word string, candidates []string, limit int) string {
	return structure.SuggestWithin(word, candidates, limit)
}
