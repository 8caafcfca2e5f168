package apply

import "context"

// What one set knew is carried over to another one by its entries, when an object changes sets as a
// whole bundle does: then nothing is deleted and made anew, and what is not wanted any more is
// still known.

// From are the entries of a set, each with the origin that its object has as long as that set owns
// it.
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

// Union are the entries of both; where both know an object, what the first one knows.
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

// Part is the view of an inventory that shows some of its entries and keeps the others where they
// are.
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
