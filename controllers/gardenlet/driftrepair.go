// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Repair implements fleet.Owner. It reports the result as an Event.
func (s *ownerWorker) Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool) {
	g := s.g
	r, o, left := s.lastRunInput()
	_, done, found, err := r.Repair(ctx, o, left, e.Set)
	if !found {
		return false, true
	}
	if err != nil {
		g.services.metrics.countRepair("failed")
		if ctx.Err() == nil {
			g.reportDrift(o.CachedObject(), e, "could not be repaired: "+strings.Join(apply.Problems(err), "; "))
		}
		return true, false
	}
	if done.Ignored {
		return true, true
	}
	if slices.Contains(done.Unrepaired, e.Ref) {
		g.services.metrics.countRepair("left")
		g.reportDrift(o.CachedObject(), e, "is not repaired: its declaration changed since the last apply; the next reconciliation applies the change and repairs the object")
		return true, true
	}
	if why := g.heldRepairReason(done.Held, e); why != "" {
		g.services.metrics.countRepair("left")
		g.reportDrift(o.CachedObject(), e, "is not repaired: "+why)
		g.fleet.Trigger(s.id) // the next reconciliation holds it, too, and reports it
		return true, true
	}
	g.services.metrics.countRepair("repaired")
	g.reportDrift(o.CachedObject(), e, "")
	g.options.Log.Info("drift was repaired", "owner", o.String(), "object", e.Ref.String(), "deleted", e.Deleted)
	return true, true
}

// heldRepairReason returns why recreating an object is held and how to approve it, or "" if it is
// not held.
func (g *Gardenlet) heldRepairReason(held []permit.HeldObjects, e apply.DriftEvent) string {
	s := g.currentSettings()
	for _, h := range held {
		for _, o := range h.Objects {
			if h.Cluster == e.Cluster && o.Ref == e.Ref {
				return fmt.Sprintf("held: %s; to approve it once: pergola approve %s %s/%s", o.Reason, s.landscape, g.options.Seed, g.approvals(s).NextID(o.ApprovalID))
			}
		}
	}
	return ""
}
