// Package secretwords knows the names that tell of a secret value beside them: of fields, files,
// labels, variables and flags.
//
// Of and IsSecret tell exactly, for what shows values beside hidden ones (a diff). In takes too
// much rather than too little, for errors about files, which may only repeat what is surely no
// secret: all names that IsSecret knows are In, and words such as "key" and "auth" besides. Stem is
// for those who look for names in long texts.
//
// What a value looks like, and what stands around it, is told by package plan.
package secretwords

import "regexp"

// words are in names of secrets and of much else.
var words = regexp.MustCompile(`(?i)pass|pwd|(?:^|[^a-z])pw|pw(?:$|[^a-z])|(?:admin|root|user|db)pw|token|cred|private|secret|kubeconfig|key|auth|` +
	`connection[-_. ]string|webhook[-_. ]url|service[-_. ]account[-_. ]json`)

// In tells whether a text has one of the words in it, or a name of a secret.
func In(text string) bool {
	if words.MatchString(text) {
		return true
	}
	for from := 0; ; {
		begin, end, ok := NextName(text, from)
		if !ok {
			return false
		}
		if IsSecret(text[begin:end]) {
			return true
		}
		from = end
	}
}
