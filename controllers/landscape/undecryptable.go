// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/landscapes"
)

// keyHint explains how to pass a key.
const keyHint = "set SOPS_AGE_KEY_FILE to the file of an age key they are encrypted for, or SOPS_AGE_KEY to the key itself"

// maxNamedSecrets limits the Secrets that an error names.
const maxNamedSecrets = 5

// undecryptableSecret is a Secret that no key decrypts, its file and line, and the age keys that
// would.
type undecryptableSecret struct {
	ref        apply.Ref
	location   string
	recipients []string
}

func newUndecryptableSecret(d *landscapes.Declaration) undecryptableSecret {
	ref := apply.Ref{APIVersion: d.GroupVersionKind().GroupVersion().String(), Kind: d.GroupVersionKind().Kind, Namespace: d.Namespace(), Name: d.Name()}
	return undecryptableSecret{ref, fmt.Sprintf("%s:%d", d.File, d.Line), d.Recipients()}
}

// UndecryptableSecrets returns the Secrets of a landscape that no key decrypts.
func UndecryptableSecrets(l *landscapes.Landscape) map[apply.Ref]bool {
	out := map[apply.Ref]bool{}
	for _, d := range l.Declarations {
		if d.Secret == landscapes.SecretEncrypted {
			out[apply.RefOf(d.Object())] = true
		}
	}
	return out
}

// CheckDecryptable returns an error if no key decrypts some Secrets of a landscape. Such a
// landscape cannot be applied: it would delete the existing Secrets.
func CheckDecryptable(l *landscapes.Landscape) error {
	return undecryptableError(findUndecryptable(l), l.Keys)
}

// MissingKeyText returns why Secrets of a landscape cannot be decrypted: no key exists, or only
// other keys.
func MissingKeyText(l *landscapes.Landscape) string { return keyProblem(findUndecryptable(l), l.Keys) }

func findUndecryptable(l *landscapes.Landscape) []undecryptableSecret {
	var locked []undecryptableSecret
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.Secret == landscapes.SecretEncrypted {
			locked = append(locked, newUndecryptableSecret(d))
		}
	}
	return locked
}

// undecryptableError names the Secrets. keys are the public forms of the keys in use.
func undecryptableError(locked []undecryptableSecret, keys []string) error {
	if len(locked) == 0 {
		return nil
	}
	var names []string
	for _, s := range locked {
		names = append(names, fmt.Sprintf("%s (%s)", s.ref, s.location))
	}
	return fmt.Errorf("nothing was applied, because %s: %s: %s", keyProblem(locked, keys), shortList(names), keyHint)
}

func keyProblem(locked []undecryptableSecret, keys []string) string {
	if len(keys) == 0 {
		return "there is no key for encrypted Secrets"
	}
	var recipients []string
	for _, s := range locked {
		recipients = append(recipients, s.recipients...)
	}
	slices.Sort(recipients)
	have := "the given age key " + keys[0] + " does not open"
	if len(keys) > 1 {
		have = "none of the given age keys (" + shortList(keys) + ") opens"
	}
	return have + " Secrets that are encrypted for " + shortList(slices.Compact(recipients))
}

// shortList names the first ones, and the number of others.
func shortList(names []string) string {
	shown := names[:min(len(names), maxNamedSecrets)]
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// undecryptableNotes names the Secrets that a comparison omits.
func undecryptableNotes(locked []undecryptableSecret) []string {
	var out []string
	for _, s := range locked {
		out = append(out, fmt.Sprintf("%s is encrypted, and no key opens it: left out of the comparison", s.ref))
	}
	return out
}

// withoutUndecryptable removes undecryptable Secrets from a plan: they are declared, but their data
// is unknown.
func withoutUndecryptable(items []change.Item, locked []undecryptableSecret) []change.Item {
	return slices.DeleteFunc(items, func(item change.Item) bool { return isUndecryptable(locked, item.Object) })
}

func isUndecryptable(locked []undecryptableSecret, ref apply.Ref) bool {
	return slices.ContainsFunc(locked, func(s undecryptableSecret) bool { return s.ref == ref })
}
