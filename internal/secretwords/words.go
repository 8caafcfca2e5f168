// Package secretwords knows the words that tell of a secret value beside them: in names of fields, files and labels, and in
// lines of text. It is for errors about files, which may only repeat what is surely no secret, so that it takes too much rather
// than too little: "key" and "auth" are such words. What a diff hides is told more exactly by package plan.
package secretwords

import "regexp"

// words contain all endings of names that package plan takes for those of secrets.
var words = regexp.MustCompile(`(?i)pass|pwd|(?:^|[^a-z])pw|pw(?:$|[^a-z])|(?:admin|root|user|db)pw|token|cred|private|secret|kubeconfig|key|auth|` +
	`dockercfg|dockerconfig|connection[-_. ]?string|webhook[-_. ]?url|serviceaccount[-_. ]?json`)

// In tells whether a text has one of the words in it.
func In(text string) bool { return words.MatchString(text) }
