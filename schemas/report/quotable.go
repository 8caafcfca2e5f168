package report

import "strings"

// Quotable gives what tells whether an error may repeat what stands in a line, counted from 1, of a
// YAML document: not where the text may hold an object with secret values, nor where a word in the
// line tells of one.
func Quotable(text string) func(line int) bool { return quotable(text, careful) }

// QuotableCUE is Quotable for a CUE file.
func QuotableCUE(text string) func(line int) bool { return quotable(text, carefulCUE) }

func quotable(text string, judge func(string) shade) func(int) bool {
	lines, sh := strings.Split(text, "\n"), judge(text)
	if encrypted.MatchString(text) {
		sh = hidden
	}
	return func(line int) bool { return line >= 1 && line <= len(lines) && !tells(lines[line-1], sh) }
}

// MayHoldSecrets tells whether a CUE file may hold an object with secret values.
func MayHoldSecrets(text string) bool {
	return encrypted.MatchString(text) || carefulCUE(text) == hidden
}
