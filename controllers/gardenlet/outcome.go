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

// reviewsKnown are the reviews at the start of a reconciliation.
type reviewsKnown struct {
	// complete is the number of the last change that was applied completely.
	complete int
	version  string
}

// outcome records the result of a reconciliation before the status shows it.
func (g *Gardenlet) outcome(ctx context.Context, at *site, from sources, s *settings, known reviewsKnown, report *owner.Report, err error) {
	at.mu.Lock()
	err = errors.Join(err, at.approvals.notTaken)
	at.mu.Unlock()
	if err == nil {
		g.withdraw(ctx, at, s, from, report)
		key := recordKey(from.kind, from.object)
		if err := g.noted.uses.PruneDeletable(ctx, key, func(ref change.Ref) bool { return wanted(at.now(), ref) }); err != nil {
			g.options.Log.Info("it is not known yet whether something that was approved is gone", "owner", key, "error", err)
		}
	}
	g.noteUsed(ctx)
	waits := len(permit.UnreviewedObjects(report.Held)) > 0
	at.mu.Lock()
	at.unreviewed = waits
	at.mu.Unlock()
	if err == nil && s.reviewed {
		g.note(ctx, from, func(was permit.ConvergenceRecord, _ bool) permit.ConvergenceRecord {
			return was.EndConvergence(from.basis, known.complete, report.Held)
		})
	}
	if waits && g.reviewVersion() != known.version {
		g.fleet.Trigger(at.id) // it was published meanwhile
	}
	held := g.stillHeld(at, from.object, report.Held)
	at.holds(held, err == nil)
	g.tellHeld(from, s, held)
	g.noteOutcome(ctx, at, from, err)
}

// noteOutcome updates the report before the status shows the result, if others need to know. They
// need the held deletions of the owner and, for a Seed, the Shoots that follow it. The rest waits
// for the next heartbeat.
func (g *Gardenlet) noteOutcome(ctx context.Context, at *site, from sources, err error) {
	if ctx.Err() != nil {
		return // a newer job replaces it
	}
	bounded, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if err := g.noteReport(bounded, &end{at: at, kind: from.kind, owner: reportedName(from.object), key: from.key, failed: err != nil}); err != nil && ctx.Err() == nil {
		g.options.Log.Info("the operator cannot be told yet how the seed stands", "error", err)
	}
}
