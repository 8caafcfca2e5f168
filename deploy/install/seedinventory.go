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
	former apply.Inventory
	seed   string
	// others are entries of the former inventory for other seeds; taken is set if some are for this
	// seed.
	others []apply.Entry
	taken  bool
}

func (i *seedInventory) of(e apply.Entry) bool {
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
	former, err := i.former.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("the inventory that seeds shared: %w", err)
	}
	i.others, i.taken = nil, false
	for _, e := range former {
		if !i.of(e) {
			i.others = append(i.others, e)
			continue
		}
		i.taken = true
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
	return i.leave(ctx)
}

// Remove removes the seed's entries from both inventories.
func (i *seedInventory) Remove(ctx context.Context) error {
	if err := i.leave(ctx); err != nil {
		return err
	}
	return i.Inventory.Remove(ctx)
}

// leave removes the seed's entries from the former inventory, and the empty inventory itself.
func (i *seedInventory) leave(ctx context.Context) error {
	if !i.taken {
		return nil
	}
	write := i.former.Remove
	if len(i.others) > 0 {
		write = func(ctx context.Context) error { return i.former.Save(ctx, i.others) }
	}
	if err := write(ctx); err != nil {
		return fmt.Errorf("the inventory that seeds shared: %w", err)
	}
	i.taken = false
	return nil
}
