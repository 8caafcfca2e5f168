package gardenlet

import (
	"fmt"

	"github.com/pergola-dev/pergola/internal/serving"
)

// Ready asks whether the gardenlet can do its work. One that waits for the lease is ready: it is
// there to take over. That the virtual garden cannot be reached is no reason to restart it, so it
// is not asked for its life.
func (g *Gardenlet) Ready() []serving.Question {
	return []serving.Question{{Name: "garden", Ask: g.gardenHears}, {Name: "settings", Ask: g.settingsKnown}}
}

func (g *Gardenlet) gardenHears() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.heart.lease == nil:
		return nil
	case g.heart.silent != nil && g.heart.beat.IsZero():
		return g.heart.silent
	case g.heart.silent != nil:
		return fmt.Errorf("since %s: %w", g.heart.beat.UTC().Format("2006-01-02T15:04:05Z"), g.heart.silent)
	case g.heart.beat.IsZero():
		return fmt.Errorf("the Seed %s was not read yet, or is not in the virtual garden", g.options.Seed)
	}
	return nil
}

func (g *Gardenlet) settingsKnown() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.heart.lease == nil || g.published.settings != nil {
		return nil
	}
	if g.published.problem != nil {
		return g.published.problem
	}
	return errNoPublication
}
