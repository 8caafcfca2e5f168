// SPDX-License-Identifier: Apache-2.0

package apply

// Keys are the labels and annotations that control the engine.
type Keys struct {
	ManagedByLabel string // set on every applied object; the live cache selects by it
	ManagedByValue string

	Origin          string // annotation: name of the set that owns the object
	Description     string // annotation: hint for people who read the object
	DescriptionText string

	Ignore         string // "true" on the live or desired object: leave it alone
	Mode           string // "Ignore": neither applied nor deleted, not in the inventory
	ForceConflicts string // "true": fields are taken over from any manager
	KeepObject     string // "true": never deleted
	// "true": an update that an immutable field forbids deletes and recreates
	DeleteOnInvalidUpdate string
	InvalidUpdateDeletion string // propagation of that deletion: Foreground, Background, Orphan
	PreserveReplicas      string // "true": replicas are set on creation only
	PreserveResources     string // "true": cpu and memory of containers are set on creation only
	// GarbageCollectable is a label; with "true", a garbage collector deletes the object when
	// nothing refers to it.
	GarbageCollectable string
	// FinalizeDeletionAfter is an annotation with the duration after which the finalizers of a
	// deleted object are removed.
	FinalizeDeletionAfter string
}

// Selector returns the label selector for all objects applied with these keys.
func (k Keys) Selector() string { return k.ManagedByLabel + "=" + k.ManagedByValue }
