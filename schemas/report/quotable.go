package report

import "strings"

// Quotable returns a function that reports whether an error may quote a line (counted from 1) of a
// YAML document. It excludes lines that may contain secret values.
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

// MayHoldSecrets reports whether a CUE file may contain an object with secret values.
func MayHoldSecrets(text string) bool {
	return encrypted.MatchString(text) || carefulCUE(text) == hidden
}
