// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"fmt"

	"github.com/pergola-dev/pergola/internal/serving"
)

// Ready returns the readiness checks. A gardenlet that waits for the lease is ready to take over.
// There are no liveness checks: a restart does not help if the virtual garden is unreachable.
func (g *Gardenlet) Ready() []serving.Check {
	return []serving.Check{{Name: "garden", Run: g.checkHeartbeat}, {Name: "settings", Run: g.checkSettings}}
}

func (g *Gardenlet) checkHeartbeat() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.heartbeatState.lease == nil:
		return nil
	case g.heartbeatState.lastError != nil && g.heartbeatState.lastSuccess.IsZero():
		return g.heartbeatState.lastError
	case g.heartbeatState.lastError != nil:
		return fmt.Errorf("since %s: %w", g.heartbeatState.lastSuccess.UTC().Format("2006-01-02T15:04:05Z"), g.heartbeatState.lastError)
	case g.heartbeatState.lastSuccess.IsZero():
		return fmt.Errorf("the Seed %s has not been read yet, or does not exist in the virtual garden", g.options.Seed)
	}
	return nil
}

func (g *Gardenlet) checkSettings() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.heartbeatState.lease == nil || g.publication.settings != nil {
		return nil
	}
	if g.publication.problem != nil {
		return g.publication.problem
	}
	return errNoPublication
}
