// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/render"
)

// The use of an approval is recorded on the seed (permit.UseLedger), without the virtual garden.

// approvalUsesConfigMap is the name of the ConfigMap that records it.
const approvalUsesConfigMap = "pergola-gardenlet-approvals"

// recordUseTimeout bounds how long an approval waits until its use is recorded.
const recordUseTimeout = 10 * time.Second

// seedConfigMapRef refers to a ConfigMap of the gardenlet on the seed.
func seedConfigMapRef(name string) apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: name}
}

// readRecords reads the records of earlier processes. Until it succeeds, every deletion needs a
// review, and no approval counts.
func (g *Gardenlet) readRecords(ctx context.Context) {
	for name, err := range map[string]error{recordsConfigMap: g.seedRecords.records.Read(ctx), approvalUsesConfigMap: g.seedRecords.approvalUses.Read(ctx)} {
		if err != nil {
			g.options.Log.Info("cannot read the records of approvals and reviews yet", "ConfigMap", name, "error", err)
		}
	}
}

// useApproval reports whether an approval allows deletions, after it recorded the use. Many
// goroutines call it.
func (g *Gardenlet) useApproval(ctx context.Context, at *ownerWorker, s *settings, of, id string, refs []change.Ref) bool {
	ctx, cancel := context.WithTimeout(ctx, recordUseTimeout)
	defer cancel()
	ok, spent, err := g.seedRecords.approvalUses.Permit(ctx, of, id, refs, g.approvalCheck(s, id))
	if spent != "" {
		g.options.Log.Info("an approval is used", "approval", spent, "owner", of, "objects", len(refs))
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if err != nil {
		at.approvalUsage.useError = fmt.Errorf("approval %s has no effect, because its use cannot be recorded: %w", id, err)
		return false
	}
	if ok {
		if at.approvalUsage.used == nil {
			at.approvalUsage.used = map[string]bool{}
		}
		at.approvalUsage.used[id] = true
	}
	return ok
}

// approvalCheck returns an approval as it was given, and reports whether it counts. An approval
// that was withdrawn during the run does not.
func (g *Gardenlet) approvalCheck(s *settings, id string) func() (string, bool) {
	return func() (string, bool) {
		shown, counts := g.approvals(s).IsApproved(id)
		return shown, counts && g.isApproved(shown)
	}
}

// isApproved reports whether the current settings still list an approval; true before the first.
func (g *Gardenlet) isApproved(shown string) bool {
	current := g.currentSettings()
	return current == nil || slices.Contains(current.approvalIDs, shown)
}

// hasObject reports whether the State of an owner contains an object.
func hasObject(left owner.State, ref change.Ref) bool {
	return slices.ContainsFunc(left.Bundles(), func(b render.Bundle) bool {
		return slices.ContainsFunc(b.Objects, func(object render.Object) bool {
			is := apply.RefOf(object.Unstructured)
			return is.GroupKind() == ref.GroupKind() && is.Namespace == ref.Namespace && is.Name == ref.Name
		})
	})
}

// forgetWithdrawnApprovals drops withdrawn approvals. If another goroutine is doing so, the next
// heartbeat retries.
func (g *Gardenlet) forgetWithdrawnApprovals(ctx context.Context) {
	given := func(id string) bool {
		s := g.currentSettings()
		return s == nil || slices.Contains(s.approvalIDs, id)
	}
	if err := g.seedRecords.approvalUses.DropWithdrawn(ctx, given); err != nil {
		g.options.Log.Info("cannot drop withdrawn approvals yet", "error", err)
	}
}
