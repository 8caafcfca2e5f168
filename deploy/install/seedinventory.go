// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/apply"
)

// seedInventory is the inventory of one seed's access. All seeds once shared an inventory, in which
// each installation replaced the previous one. Entries of the seed in the shared inventory are
// continued, and moved out of it by the first write.
type seedInventory struct {
	apply.Inventory
	shared apply.Inventory
	seed   string
	// otherSeedEntries are entries of the previous inventory for other seeds; hasSharedEntries is
	// set if some are for this seed.
	otherSeedEntries []apply.Entry
	hasSharedEntries bool
}

func (i *seedInventory) isOfSeed(e apply.Entry) bool {
	if e.Kind == "ServiceAccount" {
		return e.Name == "gardenlet-"+i.seed
	}
	return e.Name == "pergola:gardenlet:"+i.seed
}

// Load reads both inventories.
func (i *seedInventory) Load(ctx context.Context) ([]apply.Entry, error) {
	own, err := i.Inventory.Load(ctx)
	if err != nil {
		return nil, err
	}
	former, err := i.shared.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the inventory that seeds shared: %w", err)
	}
	i.otherSeedEntries, i.hasSharedEntries = nil, false
	for _, e := range former {
		if !i.isOfSeed(e) {
			i.otherSeedEntries = append(i.otherSeedEntries, e)
			continue
		}
		i.hasSharedEntries = true
		if !slices.ContainsFunc(own, func(o apply.Entry) bool { return o.Ref == e.Ref }) {
			own = append(own, e)
		}
	}
	return own, nil
}

// Save writes the own inventory first: an object is in both for a moment, but never in none.
func (i *seedInventory) Save(ctx context.Context, entries []apply.Entry) error {
	if err := i.Inventory.Save(ctx, entries); err != nil {
		return err
	}
	return i.removeFromSharedInventory(ctx)
}

// Remove removes the seed's entries from both inventories.
func (i *seedInventory) Remove(ctx context.Context) error {
	if err := i.removeFromSharedInventory(ctx); err != nil {
		return err
	}
	return i.Inventory.Remove(ctx)
}

// removeFromSharedInventory removes the seed's entries from the former inventory, and the empty
// inventory itself.
func (i *seedInventory) removeFromSharedInventory(ctx context.Context) error {
	if !i.hasSharedEntries {
		return nil
	}
	write := i.shared.Remove
	if len(i.otherSeedEntries) > 0 {
		write = func(ctx context.Context) error { return i.shared.Save(ctx, i.otherSeedEntries) }
	}
	if err := write(ctx); err != nil {
		return fmt.Errorf("writing the inventory that seeds shared: %w", err)
	}
	i.hasSharedEntries = false
	return nil
}
