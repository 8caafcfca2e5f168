package apply

import (
	"cmp"
	"errors"
	"slices"
)

// A repair (ApplyOptions.Repair) may come at any time, even while a changed declaration waits for
// its turn, its window or its approval. So it restores only what was applied.

// errNoInventory is why nothing can be repaired.
var errNoInventory = errors.New("its inventory is lost, so that it is not known what was applied: the next apply makes it anew")

// keepToApplied drops objects from a repair that are declared differently than at their last apply.
func (r *run) keepToApplied() error {
	if !r.recorded && len(r.desired) > 0 {
		return errNoInventory
	}
	declared := map[key]bool{}
	for _, d := range r.desired {
		declared[keyOf(d.ref)] = true
	}
	for _, ref := range r.refused {
		declared[keyOf(ref)] = true
	}
	for _, e := range r.sortedOld() {
		if e.Applied != "" && !e.Leaving && !declared[e.key()] {
			r.outcomes[e.key()] = outcome{ref: e.Ref, action: Skipped, message: "it is not declared any more, and that was not applied yet"}
		}
	}
	var kept []*desired
	for _, d := range r.desired {
		if r.asApplied(d) {
			kept = append(kept, d)
			continue
		}
		r.outcomes[keyOf(d.ref)] = outcome{ref: d.ref, action: Skipped, message: "what is declared of it by now was not applied yet"}
	}
	r.desired = kept
	return nil
}

// asApplied reports whether an object is declared as at its last apply.
func (r *run) asApplied(d *desired) bool {
	old := r.old[keyOf(d.ref)]
	if old.Applied == "" || old.Applied != r.wish(d).applied {
		return false
	}
	return d.ref.GroupKind() != secretKind || r.e.tracked.secrets.wrote(r.c, d.obj)
}

// allStay records candidates whose deletion was not requested as held, and returns the others.
func (r *run) allStay(items []candidate) []candidate {
	return slices.DeleteFunc(items, func(c candidate) bool {
		if c.live.GetDeletionTimestamp() != nil {
			return false
		}
		r.stays(c.entry, HeldBack, cmp.Or(c.entry.Held.String(), "nothing is deleted now"))
		return true
	})
}
