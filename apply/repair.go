package apply

import (
	"cmp"
	"slices"
)

// A repair (ApplyOptions.Repair) may come at any time: when what is declared by now was not applied yet, and its turn, its window or its approval are still
// to come. So it knows only what was applied.

// keepToApplied leaves out of a repair what is declared otherwise than it was applied last.
func (r *run) keepToApplied() {
	r.desired = slices.DeleteFunc(r.desired, func(d *desired) bool {
		if r.asApplied(d) {
			return false
		}
		r.refused = append(r.refused, d.ref) // it is wanted
		r.outcomes[keyOf(d.ref)] = outcome{ref: d.ref, action: Skipped, message: "what is declared of it by now was not applied yet"}
		return true
	})
}

// asApplied tells whether an object is declared as it was applied last.
func (r *run) asApplied(d *desired) bool {
	old := r.old[keyOf(d.ref)]
	if old.Applied == "" || old.Applied != r.wish(d).applied {
		return false
	}
	return d.ref.GroupKind() != secretKind || r.e.tracked.secrets.wrote(r.c, d.obj)
}

// onTheirWay are the objects that were told to go before; all others stay.
func (r *run) onTheirWay(items []candidate) []candidate {
	return slices.DeleteFunc(items, func(c candidate) bool {
		if c.live.GetDeletionTimestamp() != nil {
			return false
		}
		r.stays(c.entry, HeldBack, cmp.Or(c.entry.Held, "a repair deletes nothing"))
		return true
	})
}
