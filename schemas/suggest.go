package schemas

import "github.com/pergola-dev/pergola/schemas/structure"

// Suggest gives the candidate that a misspelt word most likely means, or "".
func Suggest(word string, candidates []string) string { return structure.Suggest(word, candidates) }
