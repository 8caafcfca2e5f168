// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"errors"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Clients that wait for a Seed or Shoot read its lastOperation. So everything else, above all the
// report of the Seed, is written first. A client that sees a finished operation then also sees the
// current held deletions.

// reviewState has the reviews at the start of a reconciliation.
type reviewState struct {
	// lastCompleteChange is the number of the last change that was applied completely.
	lastCompleteChange int
	version            string
}

// recordOutcome records the result of a reconciliation before the status shows it.
func (g *Gardenlet) recordOutcome(ctx context.Context, at *ownerWorker, from renderSources, s *settings, known reviewState, report *owner.Report, err error) {
	at.mu.Lock()
	err = errors.Join(err, at.approvalUsage.useError)
	at.mu.Unlock()
	if err == nil {
		g.lapseApprovals(ctx, at, s, from, report)
		key := convergenceRecordKey(from.kind, from.object)
		if err := g.seedRecords.approvalUses.PruneDeletable(ctx, key, func(ref change.Ref) bool { return hasObject(at.currentState(), ref) }); err != nil {
			g.options.Log.Info("cannot update the records of approved deletions yet", "owner", key, "error", err)
		}
	}
	g.publishUsedApprovals(ctx)
	waits := len(permit.UnreviewedObjects(report.Held)) > 0
	at.mu.Lock()
	at.awaitsReview = waits
	at.mu.Unlock()
	if err == nil && s.requiresReview {
		g.updateConvergenceRecord(ctx, from, func(was permit.ConvergenceRecord, _ bool) permit.ConvergenceRecord {
			return was.EndConvergence(from.gitDigest, known.lastCompleteChange, report.Held)
		})
	}
	if waits && g.reviewVersion() != known.version {
		g.fleet.Trigger(at.id) // it was published meanwhile
	}
	held := g.restoreHoldReasons(at, from.object, report.Held)
	at.recordHeld(held, err == nil)
	g.reportHeldDeletions(from, s, held)
	g.reportOutcome(ctx, at, from, err)
}

// reportOutcome updates the report before the status shows the result, if others need to know. They
// need the held deletions of the owner and, for a Seed, the Shoots that follow it. The rest waits
// for the next heartbeat.
func (g *Gardenlet) reportOutcome(ctx context.Context, at *ownerWorker, from renderSources, err error) {
	if ctx.Err() != nil {
		return // a newer job replaces it
	}
	bounded, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	if err := g.writeReport(bounded, &finishedRun{worker: at, kind: from.kind, owner: reportOwnerName(from.object), key: from.digest, hasFailed: err != nil}); err != nil && ctx.Err() == nil {
		g.options.Log.Info("cannot write the report of the seed yet", "error", err)
	}
}
