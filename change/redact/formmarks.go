// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// Patterns are slow and many. Each is tried only in texts that have one of its fixed texts.

// formMarks finds the fixed texts of all forms in one pass over a text.
type formMarks struct {
	forms int
	// byLetter has the forms of one-letter marks; byPair has longer marks by their first two
	// letters.
	byLetter map[byte][]int
	byPair   [1 << 16][]mark
}

// mark is a fixed text and the index of its form.
type mark struct {
	text string
	form int
}

var textFormMarks = func() *formMarks {
	t := &formMarks{forms: len(textForms), byLetter: map[byte][]int{}}
	for i, f := range textForms {
		for _, text := range f.marks {
			if len(text) == 1 {
				t.byLetter[text[0]] = append(t.byLetter[text[0]], i)
				continue
			}
			pair := int(text[0])<<8 | int(text[1])
			t.byPair[pair] = append(t.byPair[pair], mark{text, i})
		}
	}
	return t
}()

// findForms reports for each form whether a lower-case text has one of its marks.
func (t *formMarks) findForms(lower string) []bool {
	found := make([]bool, t.forms)
	for letter, forms := range t.byLetter {
		if strings.IndexByte(lower, letter) >= 0 {
			for _, i := range forms {
				found[i] = true
			}
		}
	}
	for at := 0; at+1 < len(lower); at++ {
		for _, m := range t.byPair[int(lower[at])<<8|int(lower[at+1])] {
			if !found[m.form] && strings.HasPrefix(lower[at:], m.text) {
				found[m.form] = true
			}
		}
	}
	return found
}

// findMatches returns the groups of all matches of the form's pattern.
func (f secretForm) findMatches(s string) [][]int {
	if f.canBeInLine == nil {
		return f.pattern.FindAllStringSubmatchIndex(s, -1)
	}
	lower := strings.ToLower(s)
	if len(lower) != len(s) { // lower case changed the length, so offsets differ
		lower = ""
	}
	next := make([]int, len(f.marks)) // next offset of each mark
	var out [][]int
	for at := 0; at < len(s); {
		if lower != "" && len(f.marks) > 0 {
			first := len(s)
			for i, text := range f.marks {
				if next[i] < at || at == 0 {
					next[i] = len(s)
					if n := strings.Index(lower[at:], text); n >= 0 {
						next[i] = at + n
					}
				}
				first = min(first, next[i])
			}
			if first == len(s) {
				break
			}
			at = strings.LastIndexByte(s[:first], '\n') + 1
		}
		end := len(s)
		if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
			end = at + n
		}
		if line := s[at:end]; f.canBeInLine(line) {
			for _, g := range f.pattern.FindAllStringSubmatchIndex(line, -1) {
				for i := range g {
					if g[i] >= 0 {
						g[i] += at
					}
				}
				out = append(out, g)
			}
		}
		at = end + 1
	}
	return out
}
