package gardenlet

import (
	"context"
	"errors"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Whoever waits for a Seed or Shoot looks at its lastOperation. So all that is to be known besides,
// the report of the Seed above all, is written before that says how it went: who finds it done
// finds what is held by then, and not what was held before.

// reviewsKnown are the reviews as they were when a convergence began.
type reviewsKnown struct {
	// complete is the number of the last change that was applied completely.
	complete int
	version  string
}

// outcome takes in what came of a convergence. The status does not say it yet.
func (g *Gardenlet) outcome(ctx context.Context, at *site, from sources, s *settings, known reviewsKnown, report *owner.Report, err error) {
	at.mu.Lock()
	err = errors.Join(err, at.approvals.notTaken)
	at.mu.Unlock()
	if err == nil {
		g.withdraw(ctx, at, s, from, report)
		key := recordKey(from.kind, from.object)
		if err := g.noted.uses.Settle(ctx, key, func(ref change.Ref) bool { return wanted(at.now(), ref) }); err != nil {
			g.options.Log.Info("it is not known yet whether something that was approved is gone", "owner", key, "error", err)
		}
	}
	g.noteUsed(ctx)
	waits := len(permit.Unreviewed(report.Held)) > 0
	at.mu.Lock()
	at.unreviewed = waits
	at.mu.Unlock()
	if err == nil && s.reviewed {
		g.note(ctx, from, func(was permit.Converged, _ bool) permit.Converged {
			return was.End(from.basis, known.complete, report.Held)
		})
	}
	if waits && g.reviewVersion() != known.version {
		g.fleet.Trigger(at.id) // it became known meanwhile
	}
	held := g.stillHeld(at, from.object, report.Held)
	at.holds(held, err == nil)
	g.tellHeld(from, s, held)
	g.noteOutcome(ctx, at, from, err)
}

// noteOutcome brings the report up to date where others have to know before the status says that it
// is done: of what is held of the owner, and, of a Seed, which Shoots follow it. All else can wait
// for the next heartbeat.
func (g *Gardenlet) noteOutcome(ctx context.Context, at *site, from sources, err error) {
	if ctx.Err() != nil {
		return // a newer job takes its place
	}
	bounded, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if err := g.noteReport(bounded, &end{at: at, kind: from.kind, owner: reportedName(from.object), key: from.key, failed: err != nil}); err != nil && ctx.Err() == nil {
		g.options.Log.Info("the operator cannot be told yet how the seed stands", "error", err)
	}
}
