// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"sync"

	"github.com/pergola-dev/pergola/change"
)

// Entry is one object of an inventory.
type Entry struct {
	Ref
	// Labels and Annotations are those last applied.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// AppliedDigest is the digest of the last successful request; empty before the first one.
	AppliedDigest string `json:"applied,omitempty"`
	// LiveDigest is the digest of the fields that we own in the server's answer.
	LiveDigest string `json:"live,omitempty"`
	// Deleting marks an object that left the set and is still being deleted. Its health is ignored.
	Deleting bool `json:"leaving,omitempty"`
	// HeldReason is why the gate last held the deletion or recreation of the object. It is cleared
	// when the deletion begins, or the object is in its desired state.
	HeldReason change.Reason `json:"heldFor,omitzero"`
	// DeclaredFields are the declared values of the fields in Set.Yields, as JSON, at the last
	// apply.
	DeclaredFields map[string]string `json:"fields,omitempty"`
	// Source is the file that declares the object, if Set.RecordSources is set.
	Source string `json:"source,omitempty"`
	// CreateOnlyFields names the field groups that are left to other managers ("replicas",
	// "resources").
	CreateOnlyFields []string `json:"createOnly,omitempty"`
}

func (e Entry) key() objectKey { return objectKeyOf(e.Ref) }

// HeldReasons returns why objects were held in the previous run, for permit.Gate.HeldReasons.
func HeldReasons(entries []Entry) map[Ref]change.Reason {
	out := map[Ref]change.Reason{}
	for _, e := range entries {
		if !e.HeldReason.IsZero() {
			out[e.Ref] = e.HeldReason
		}
	}
	return out
}

// Inventory stores the objects of one set between runs. The Lease of the role ensures a single
// writer.
type Inventory interface {
	// Load returns the entries, or none if there is no inventory yet. A failed read must be an
	// error.
	Load(ctx context.Context) ([]Entry, error)
	Save(ctx context.Context, entries []Entry) error
	// Remove deletes the inventory once all objects in it are deleted.
	Remove(ctx context.Context) error
}

// TwoPhaseInventory is an Inventory that stores more than entries, in one write. Apply calls Begin
// instead of the first Save, even without a new entry, and End instead of the last Save, if entries
// changed. End may leave the write to the caller of Apply.
type TwoPhaseInventory interface {
	Inventory
	Begin(ctx context.Context, entries []Entry) error
	End(ctx context.Context, entries []Entry) error
}

// MemoryInventory is an Inventory for one process.
type MemoryInventory struct {
	mu      sync.Mutex
	entries []Entry
	saves   int
}

// NewMemoryInventory makes an inventory with these entries.
func NewMemoryInventory(entries ...Entry) *MemoryInventory { return &MemoryInventory{entries: entries} }

// Load returns a copy of the entries.
func (m *MemoryInventory) Load(context.Context) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries), nil
}

// Save replaces the entries.
func (m *MemoryInventory) Save(_ context.Context, entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries, m.saves = slices.Clone(entries), m.saves+1
	return nil
}

// Remove forgets all entries.
func (m *MemoryInventory) Remove(ctx context.Context) error { return m.Save(ctx, nil) }

// Saves returns the number of writes.
func (m *MemoryInventory) Saves() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saves
}
