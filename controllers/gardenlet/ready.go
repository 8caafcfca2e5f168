package gardenlet

import (
	"fmt"

	"github.com/pergola-dev/pergola/internal/serving"
)

// Ready returns the readiness checks. A gardenlet that waits for the lease is ready to take over.
// There are no liveness checks: a restart does not help if the virtual garden is unreachable.
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
