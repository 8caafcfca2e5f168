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
	// Applied is the digest of what was asked of the server, empty before the first success.
	Applied string `json:"applied,omitempty"`
	// Live is the digest of our owned fields in the server's answer.
	Live string `json:"live,omitempty"`
	// Leaving is an object that left the set and is still being deleted. Nobody asks for its
	// health.
	Leaving bool `json:"leaving,omitempty"`
	// Held is why an object that is to be deleted, or recreated, is kept for now, as the gate said
	// last. It ends when the deletion of the object begins to go, and when it is as it is wanted.
	Held change.Reason `json:"heldFor,omitzero"`
	// Fields are the declared values of the fields in Set.Yields, as JSON, at the last apply.
	Fields map[string]string `json:"fields,omitempty"`
	// Source is the file that declares it, where the set keeps that.
	Source string `json:"source,omitempty"`
	// CreateOnly names the field groups that were left to other managers ("replicas", "resources").
	CreateOnly []string `json:"createOnly,omitempty"`
}

func (e Entry) key() key { return keyOf(e.Ref) }

// HeldBefore is why objects of an inventory were held in a run before, for permit.Gate.Before.
func HeldBefore(entries []Entry) map[Ref]change.Reason {
	out := map[Ref]change.Reason{}
	for _, e := range entries {
		if !e.Held.IsZero() {
			out[e.Ref] = e.Held
		}
	}
	return out
}

// Inventory remembers the objects of one set between runs. One writer at a time: the role's Lease
// sees to it.
type Inventory interface {
	// Load returns the entries, none when there is no inventory yet. A failed read must be an
	// error.
	Load(ctx context.Context) ([]Entry, error)
	Save(ctx context.Context, entries []Entry) error
	// Remove forgets the inventory after everything in it is gone.
	Remove(ctx context.Context) error
}

// StepInventory is an Inventory that keeps more than entries in one place, and writes it together.
// Apply calls Begin instead of the first Save, even if no entry is new, and End instead of the last
// one, when an entry is: it may leave the writing to the caller of Apply.
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

// NewMemoryInventory makes an inventory that holds the entries.
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

// Saves counts the writes.
func (m *MemoryInventory) Saves() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saves
}
