package plan

import (
	"fmt"

	"github.com/pergola-dev/pergola/change"
)

// Long values in one line, such as certificates in base64, say nothing to a person: what is shown
// of them is where they differ.

const (
	longValue   = 240 // runes from which on only a part is shown
	windowSides = 24  // runes shown beside the part that differs
	windowWidth = 120 // runes shown of the part that differs
)

// pair is the old and the new value of a field as they are shown side by side.
func pair(f change.Field) (old, new string) {
	old, new = show(f.Old), show(f.New)
	o, n := []rune(old), []rune(new)
	if max(len(o), len(n)) < longValue || hasBreak(o) || hasBreak(n) {
		return old, new
	}
	same := 0
	for same < min(len(o), len(n)) && o[same] == n[same] {
		same++
	}
	from := max(0, same-windowSides)
	return window(o, from), window(n, from)
}

func hasBreak(s []rune) bool {
	for _, r := range s {
		if r == '\n' {
			return true
		}
	}
	return false
}

// window is the part of a long value that begins somewhere, with its length where that is not all
// of it.
func window(s []rune, from int) string {
	if len(s) < longValue {
		return string(s)
	}
	to := min(len(s), from+windowSides+windowWidth)
	text := string(s[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(s) {
		text += "…"
	}
	return text + fmt.Sprintf(" (%d characters)", len(s))
}
