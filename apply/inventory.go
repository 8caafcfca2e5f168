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
	// Applied is the digest of the last successful request; empty before the first one.
	Applied string `json:"applied,omitempty"`
	// Live is the digest of the fields that we own in the server's answer.
	Live string `json:"live,omitempty"`
	// Leaving marks an object that left the set and is still being deleted. Its health is ignored.
	Leaving bool `json:"leaving,omitempty"`
	// Held is why the gate last held the deletion or recreation of the object. It is cleared when
	// the deletion begins, or the object is in its desired state.
	Held change.Reason `json:"heldFor,omitzero"`
	// Fields are the declared values of the fields in Set.Yields, as JSON, at the last apply.
	Fields map[string]string `json:"fields,omitempty"`
	// Source is the file that declares the object, if Set.KeepSources is set.
	Source string `json:"source,omitempty"`
	// CreateOnly names the field groups that are left to other managers ("replicas", "resources").
	CreateOnly []string `json:"createOnly,omitempty"`
}

func (e Entry) key() key { return keyOf(e.Ref) }

// HeldBefore returns why objects were held in the previous run, for permit.Gate.HeldBefore.
func HeldBefore(entries []Entry) map[Ref]change.Reason {
	out := map[Ref]change.Reason{}
	for _, e := range entries {
		if !e.Held.IsZero() {
			out[e.Ref] = e.Held
		}
	}
	return out
}

// Inventory stores the objects of one set between runs. The Lease of the role ensures a single
// writer.
type Inventory interface {
	// Load returns the entries, none if there is no inventory yet. A failed read must be an error.
	Load(ctx context.Context) ([]Entry, error)
	Save(ctx context.Context, entries []Entry) error
	// Remove deletes the inventory once all objects in it are deleted.
	Remove(ctx context.Context) error
}

// StepInventory is an Inventory that stores more than entries, in one write. Apply calls Begin
// instead of the first Save, even without a new entry, and End instead of the last Save, if entries
// changed. End may leave the write to the caller of Apply.
type StepInventory interface {
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
