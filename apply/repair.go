// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"slices"
)

// A repair (ApplyOptions.Repair) may come at any time, even while a changed declaration waits for
// its turn, its window or its approval. So it restores only what was applied.

// errNoInventory is why nothing can be repaired.
var errNoInventory = errors.New("its inventory is lost, so the applied objects are unknown: the next apply rebuilds it")

// skipChangedDeclarations drops objects from a repair that are declared differently than at their
// last apply.
func (r *setRun) skipChangedDeclarations() error {
	if !r.hadEntries && len(r.desired) > 0 {
		return errNoInventory
	}
	declared := map[objectKey]bool{}
	for _, d := range r.desired {
		declared[objectKeyOf(d.ref)] = true
	}
	for _, ref := range r.refused {
		declared[objectKeyOf(ref)] = true
	}
	for _, e := range r.sortedOldEntries() {
		if e.AppliedDigest != "" && !e.Deleting && !declared[e.key()] {
			r.outcomes[e.key()] = outcome{ref: e.Ref, action: Skipped, message: "it is no longer declared, and its removal was not applied yet"}
		}
	}
	var kept []*desiredObject
	for _, d := range r.desired {
		if r.isDeclaredAsApplied(d) {
			kept = append(kept, d)
			continue
		}
		r.outcomes[objectKeyOf(d.ref)] = outcome{ref: d.ref, action: Skipped, message: "its declaration changed, and the change was not applied yet"}
	}
	r.desired = kept
	return nil
}

// isDeclaredAsApplied reports whether an object is declared as at its last apply.
func (r *setRun) isDeclaredAsApplied(d *desiredObject) bool {
	old := r.oldEntries[objectKeyOf(d.ref)]
	if old.AppliedDigest == "" || old.AppliedDigest != r.requestFor(d).appliedDigest {
		return false
	}
	return d.ref.GroupKind() != secretKind || r.engine.tracker.secretSums.isLastWritten(r.cluster, d.obj)
}

// holdUnrequestedDeletions records candidates whose deletion was not requested as held, and returns
// the others.
func (r *setRun) holdUnrequestedDeletions(items []deletionCandidate) []deletionCandidate {
	return slices.DeleteFunc(items, func(c deletionCandidate) bool {
		if c.live.GetDeletionTimestamp() != nil {
			return false
		}
		r.recordRemaining(c.entry, HeldBack, cmp.Or(c.entry.HeldReason.String(), "nothing is deleted now"))
		return true
	})
}
