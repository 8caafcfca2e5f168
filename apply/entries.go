package apply

import "github.com/pergola-dev/pergola/change"

// entryOf is the entry of an object in the inventory.
func (r *run) entryOf(ref Ref) Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[keyOf(ref)]; known {
		return e
	}
	return Entry{Ref: ref}
}

// isThere takes back that an object is about to be made, which its inventory says of what the cache
// does not show: it was applied before, should this run fail.
func (r *run) isThere(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[keyOf(ref)]; known && !e.Leaving && !r.old[keyOf(ref)].Leaving {
		e.Applied, e.Live = r.old[keyOf(ref)].Applied, r.old[keyOf(ref)].Live
		r.entries[keyOf(ref)] = e
	}
}

// noteHeld notes in the inventory why an object is kept that is to go; nothing, for one that is
// not.
func (r *run) noteHeld(ref Ref, reason change.Reason) {
	if r.dry {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[keyOf(ref)]; known && e.Held != reason {
		e.Held = reason
		r.entries[keyOf(ref)] = e
	}
}
