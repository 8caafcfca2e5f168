// SPDX-License-Identifier: Apache-2.0

package report

import "strings"

// QuotableLines returns a function that reports whether an error may quote a line (counted from 1)
// of a YAML document. It excludes lines that may contain secret values.
func QuotableLines(text string) func(line int) bool { return quotableLines(text, unparsedVisibility) }

// QuotableCUELines is Quotable for a CUE file.
func QuotableCUELines(text string) func(line int) bool { return quotableLines(text, cueVisibility) }

func quotableLines(text string, judge func(string) visibility) func(int) bool {
	lines, sh := strings.Split(text, "\n"), judge(text)
	if encryptedPattern.MatchString(text) {
		sh = secret
	}
	return func(line int) bool { return line >= 1 && line <= len(lines) && !canRevealSecret(lines[line-1], sh) }
}

// CanHoldSecrets reports whether a CUE file may contain an object with secret values.
func CanHoldSecrets(text string) bool {
	return encryptedPattern.MatchString(text) || cueVisibility(text) == secret
}
