// SPDX-License-Identifier: Apache-2.0

// Package secretwords recognizes names of secret values: of fields, files, labels, variables and
// flags.
//
// IsSecret and Of are exact, for output that shows other values beside redacted ones (a diff). In
// matches too much rather than too little, for errors about files, which may quote only text that
// is certainly not secret. In matches every name that IsSecret accepts, and words such as "key" and
// "auth". Stem finds names in long texts.
//
// Package plan recognizes secrets by their value and context.
package secretwords

import "regexp"

// wordPattern occur in names of secrets and in many other names.
var wordPattern = regexp.MustCompile(`(?i)pass|pwd|(?:^|[^a-z])pw|pw(?:$|[^a-z])|(?:admin|root|user|db)pw|token|cred|private|secret|kubeconfig|key|auth|` +
	`connection[-_. ]string|webhook[-_. ]url|service[-_. ]account[-_. ]json`)

// HasSecretWord reports whether a text contains one of the words, or a name of a secret.
func HasSecretWord(text string) bool {
	if wordPattern.MatchString(text) {
		return true
	}
	for from := 0; ; {
		begin, end, ok := NextCandidate(text, from)
		if !ok {
			return false
		}
		if IsSecret(text[begin:end]) {
			return true
		}
		from = end
	}
}
