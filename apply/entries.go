// SPDX-License-Identifier: Apache-2.0

package apply

import "github.com/pergola-dev/pergola/change"

// entryOf returns the inventory entry of an object.
func (r *setRun) entryOf(ref Ref) Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[objectKeyOf(ref)]; known {
		return e
	}
	return Entry{Ref: ref}
}

// restoreEntry restores the digests that announce cleared for an object that is not cached but
// exists. If this run fails, the inventory still says that the object was applied.
func (r *setRun) restoreEntry(ref Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[objectKeyOf(ref)]; known && !e.Deleting && !r.oldEntries[objectKeyOf(ref)].Deleting {
		e.AppliedDigest, e.LiveDigest = r.oldEntries[objectKeyOf(ref)].AppliedDigest, r.oldEntries[objectKeyOf(ref)].LiveDigest
		r.entries[objectKeyOf(ref)] = e
	}
}

// recordHeld records in the inventory why the deletion of an object is held; a zero reason clears
// it.
func (r *setRun) recordHeld(ref Ref, reason change.Reason) {
	if r.dry {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.entries[objectKeyOf(ref)]; known && e.HeldReason != reason {
		e.HeldReason = reason
		r.entries[objectKeyOf(ref)] = e
	}
}
