package apply

import "context"

// When an object moves to another set with its whole bundle, its entries are added to the inventory
// of that set. So nothing is deleted and recreated, and objects that are no longer declared are
// still known.

// From returns the entries of a set, each with the origin annotation that its object has in that
// set.
func (e *Engine) From(set string, entries []Entry) []Entry {
	out := make([]Entry, 0, len(entries))
	for _, one := range entries {
		if one.Annotations[e.keys.Origin] == "" {
			one.Annotations = merge(one.Annotations, map[string]string{e.keys.Origin: set})
		}
		out = append(out, one)
	}
	return out
}

// Union returns the entries of both; for an object in both, the entry of the first.
func Union(first, second []Entry) []Entry {
	known := map[key]bool{}
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

// Part returns a view of an inventory with some of its entries; writes preserve the others.
func Part(whole Inventory, shows func(Entry) bool) Inventory { return &part{whole, shows} }

type part struct {
	whole Inventory
	shows func(Entry) bool
}

func (p *part) split(ctx context.Context) (shown, hidden []Entry, err error) {
	all, err := p.whole.Load(ctx)
	for _, e := range all {
		if p.shows(e) {
			shown = append(shown, e)
		} else {
			hidden = append(hidden, e)
		}
	}
	return shown, hidden, err
}

func (p *part) Load(ctx context.Context) ([]Entry, error) {
	shown, _, err := p.split(ctx)
	return shown, err
}

func (p *part) Save(ctx context.Context, entries []Entry) error {
	_, hidden, err := p.split(ctx)
	if err != nil {
		return err
	}
	return p.whole.Save(ctx, Union(entries, hidden))
}

func (p *part) Remove(ctx context.Context) error {
	_, hidden, err := p.split(ctx)
	if err != nil {
		return err
	}
	if len(hidden) > 0 {
		return p.whole.Save(ctx, hidden)
	}
	return p.whole.Remove(ctx)
}
