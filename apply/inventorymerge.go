// SPDX-License-Identifier: Apache-2.0

package apply

import "context"

// When an object moves to another set with its whole bundle, its entries are added to the inventory
// of that set. So nothing is deleted and recreated, and objects that are no longer declared are
// still known.

// EntriesFromSet returns the entries of a set, each with the origin annotation that its object has
// in that set.
func (e *Engine) EntriesFromSet(set string, entries []Entry) []Entry {
	out := make([]Entry, 0, len(entries))
	for _, one := range entries {
		if one.Annotations[e.keys.Origin] == "" {
			one.Annotations = mergeMaps(one.Annotations, map[string]string{e.keys.Origin: set})
		}
		out = append(out, one)
	}
	return out
}

// MergeEntries returns the entries of both; for an object in both, the entry of the first.
func MergeEntries(first, second []Entry) []Entry {
	known := map[objectKey]bool{}
	var out []Entry
	for _, entries := range [][]Entry{first, second} {
		for _, e := range entries {
			if !known[e.key()] {
				known[e.key()] = true
				out = append(out, e)
			}
		}
	}
	return out
}

// FilterInventory returns a view of an inventory with some of its entries; writes preserve the
// others.
func FilterInventory(whole Inventory, shows func(Entry) bool) Inventory {
	return &filteredInventory{whole, shows}
}

type filteredInventory struct {
	whole    Inventory
	includes func(Entry) bool
}

func (p *filteredInventory) split(ctx context.Context) (shown, hidden []Entry, err error) {
	all, err := p.whole.Load(ctx)
	for _, e := range all {
		if p.includes(e) {
			shown = append(shown, e)
		} else {
			hidden = append(hidden, e)
		}
	}
	return shown, hidden, err
}

func (p *filteredInventory) Load(ctx context.Context) ([]Entry, error) {
	shown, _, err := p.split(ctx)
	return shown, err
}

func (p *filteredInventory) Save(ctx context.Context, entries []Entry) error {
	_, hidden, err := p.split(ctx)
	if err != nil {
		return err
	}
	return p.whole.Save(ctx, MergeEntries(entries, hidden))
}

func (p *filteredInventory) Remove(ctx context.Context) error {
	_, hidden, err := p.split(ctx)
	if err != nil {
		return err
	}
	if len(hidden) > 0 {
		return p.whole.Save(ctx, hidden)
	}
	return p.whole.Remove(ctx)
}
