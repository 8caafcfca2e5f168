// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Approvals are the ids that people have given to the operator or to a gardenlet, and the used ones
// among them. The id follows from the held objects alone, so a diff before the merge and the
// cluster give the same one. Each approval counts once: the second time people see the id with the
// suffix -2, then -3. Both lists have the ids with suffixes.
type Approvals struct{ Given, Used []string }

// ApprovalsForSeed returns the ids given to the gardenlet of a seed, as SEED/ID, or without a seed
// to the operator. Anybody who knows the names of objects can compute an id, so an approval counts
// only where it was given.
func ApprovalsForSeed(seed string, given []string) (out []string) {
	for _, text := range given {
		at, id, onSeed := strings.Cut(text, "/")
		switch {
		case onSeed && seed != "" && at == seed:
			out = append(out, id)
		case !onSeed && seed == "":
			out = append(out, text)
		}
	}
	return out
}

// TrimSuffix returns an id without its suffix.
func TrimSuffix(shown string) string {
	id, _, _ := strings.Cut(shown, "-")
	return id
}

// NextID returns the id with the first unused suffix. It is empty for no id.
func (a Approvals) NextID(id string) string {
	shown := id
	for n := 2; id != "" && slices.Contains(a.Used, shown); n++ {
		shown = fmt.Sprintf("%s-%d", id, n)
	}
	return shown
}

// IsApproved returns the id with its suffix, and reports whether people have given it.
func (a Approvals) IsApproved(id string) (shown string, counts bool) {
	shown = a.NextID(id)
	return shown, slices.Contains(a.Given, shown)
}

// IsUnused reports whether people have given an id, with its suffix, that is not used yet.
func (a Approvals) IsUnused(shown string) bool {
	return slices.Contains(a.Given, shown) && !slices.Contains(a.Used, shown)
}

// ActiveIDs returns the ids, without suffixes, that the gate accepts.
func (a Approvals) ActiveIDs() (out []string) {
	for _, given := range a.Given {
		if given == a.NextID(TrimSuffix(given)) {
			out = append(out, TrimSuffix(given))
		}
	}
	return out
}

// DropWithdrawn drops the used ids that are no longer given: they can be given again.
func (a Approvals) DropWithdrawn() Approvals {
	a.Used = slices.DeleteFunc(slices.Clone(a.Used), func(id string) bool { return !slices.Contains(a.Given, id) })
	return a
}

// LapsedIDs returns the unused approvals that match no held object or set now. held has Plain ids.
// If these approvals stayed valid, they would later approve deletions that no one has seen held.
func (a Approvals) LapsedIDs(held map[string]bool) (out []string) {
	for _, id := range a.Given {
		if !held[TrimSuffix(id)] && a.IsUnused(id) {
			out = append(out, id)
		}
	}
	return out
}

// LapsedAfterRun returns the lapsed ids of one owner after a complete run. These are ids that were
// held before the run, unless their objects passed, and ids that had lapsed earlier. An id that is
// held now has not lapsed.
func LapsedAfterRun(lapsed, before, now, passed map[string]bool) map[string]bool {
	out := map[string]bool{}
	maps.Copy(out, before)
	maps.DeleteFunc(out, func(id string, _ bool) bool { return passed[id] })
	maps.Copy(out, lapsed)
	maps.DeleteFunc(out, func(id string, _ bool) bool { return now[id] })
	return out
}
