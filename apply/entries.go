package apply

import "github.com/pergola-dev/pergola/change"

// entryOf returns the inventory entry of an object.
func (r *run) entryOf(ref Ref) Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[keyOf(ref)]; known {
		return e
	}
	return Entry{Ref: ref}
}

// isThere restores the digests that announce cleared for an object that is not cached but exists.
// If this run fails, the inventory still says that the object was applied.
func (r *run) isThere(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[keyOf(ref)]; known && !e.Leaving && !r.old[keyOf(ref)].Leaving {
		e.Applied, e.Live = r.old[keyOf(ref)].Applied, r.old[keyOf(ref)].Live
		r.entries[keyOf(ref)] = e
	}
}

// noteHeld records in the inventory why the deletion of an object is held; a zero reason clears it.
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
