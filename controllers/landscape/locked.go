package landscape

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
)

// keyHint says how a key is given.
const keyHint = "set SOPS_AGE_KEY_FILE to the file of an age key they are encrypted for, or SOPS_AGE_KEY to the key itself"

// shownLocked is how many Secrets without a key an error names.
const shownLocked = 5

// lockedSecret is a Secret that no key opens, and the file and line it stands in.
type lockedSecret struct {
	ref   apply.Ref
	place string
}

func lockedSecretOf(d *landscapes.Declaration) lockedSecret {
	ref := apply.Ref{APIVersion: d.GroupVersionKind().GroupVersion().String(), Kind: d.GroupVersionKind().Kind, Namespace: d.Namespace(), Name: d.Name()}
	return lockedSecret{ref, fmt.Sprintf("%s:%d", d.File, d.Line)}
}

// Locked are the Secrets of a landscape that no key opens.
func Locked(l *landscapes.Landscape) map[apply.Ref]bool {
	out := map[apply.Ref]bool{}
	for _, d := range l.Declarations {
		if d.Secret == landscapes.SecretEncrypted {
			out[apply.RefOf(d.Object())] = true
		}
	}
	return out
}

// CheckKeys is an error when no key opens some of the Secrets of a landscape. Such a landscape cannot be applied: without
// them it would lack them, and delete those there are.
func CheckKeys(l *landscapes.Landscape) error {
	var locked []lockedSecret
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.Secret == landscapes.SecretEncrypted {
			locked = append(locked, lockedSecretOf(d))
		}
	}
	return lockedError(locked)
}

func lockedError(locked []lockedSecret) error {
	if len(locked) == 0 {
		return nil
	}
	var names []string
	for _, s := range locked[:min(len(locked), shownLocked)] {
		names = append(names, fmt.Sprintf("%s (%s)", s.ref, s.place))
	}
	if more := len(locked) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("nothing was applied, because there is no key for encrypted Secrets: %s: %s", strings.Join(names, ", "), keyHint)
}

// lockedNotes say which Secrets a comparison leaves out.
func lockedNotes(locked []lockedSecret) []string {
	var out []string
	for _, s := range locked {
		out = append(out, fmt.Sprintf("%s is encrypted and there is no key: left out of the comparison", s.ref))
	}
	return out
}

// withoutLocked leaves out what a plan says of Secrets without a key: they are declared, only what is in them is not known.
func withoutLocked(items []plan.Item, locked []lockedSecret) []plan.Item {
	return slices.DeleteFunc(items, func(item plan.Item) bool { return isLocked(locked, item.Object) })
}

func isLocked(locked []lockedSecret, ref apply.Ref) bool {
	return slices.ContainsFunc(locked, func(s lockedSecret) bool { return s.ref == ref })
}
