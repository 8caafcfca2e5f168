package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// An approval counts once for a seed, as it does for the operator. Its use is recorded on the seed
// before anything is deleted (uses.go) and published in an annotation of the Seed. An id that
// leaves the publication is forgotten and can be given again.

// approvals returns the approvals of the settings. Used are those that the Seed lists and those
// that were recorded on the seed.
func (g *Gardenlet) approvals(s *settings) permit.Approvals {
	used := append(seedpublication.UsedApprovals(g.objects.get(kindSeed, "", g.options.Seed)), g.noted.uses.IDs()...)
	slices.Sort(used)
	return permit.Approvals{Given: s.approved, Used: slices.Compact(used)}.DropWithdrawn()
}

// reconcilerFor returns a copy of the settings' reconciler for one owner. Its gate checks whether
// each approval counts.
func (g *Gardenlet) reconcilerFor(ctx context.Context, s *settings, at *site, from sources, o owner.Owner) *owner.Reconciler {
	r := *s.reconciler
	r.Gate.Reviewed = g.reviewed(from, o.Input.Owner, s)
	r.Gate.Approved = map[string]bool{}
	for _, id := range s.approved {
		r.Gate.Approved[permit.TrimSuffix(id)] = true
	}
	for _, p := range g.noted.uses.DeletableObjects() {
		r.Gate.Approved[permit.ApprovalID(g.links.local.Name(), p.Object)] = true
	}
	ctx = context.WithoutCancel(ctx) // care uses the gate after the job has ended, too
	r.Gate.Ledger = func(id string, refs []change.Ref) bool {
		return g.take(ctx, at, s, recordKey(from.kind, from.object), id, refs)
	}
	return &r
}

// withdraw uses up approvals of objects that were held and no longer are, for a reason other than
// an approval. It also uses up approvals that arrive later: a new hold needs a new one. Call it
// only after a complete run.
func (g *Gardenlet) withdraw(ctx context.Context, at *site, s *settings, from sources, report *owner.Report) {
	if report == nil {
		return
	}
	former := seedpublication.ReadReport(g.objects.get(kindSeed, "", g.options.Seed))
	var before map[string]bool
	at.mu.Lock()
	switch {
	case at.judged: // this process knows more than the last report
		before = permit.HeldIDs(at.held)
	case former != nil:
		before = reportedIDs(heldOf(former.Held, reportedName(from.object)))
	}
	lapsed := permit.LapsedAfterRun(at.approvals.lapsed, before, permit.HeldIDs(report.Held), at.approvals.passed)
	at.approvals.passed, at.approvals.lapsed = nil, lapsed
	at.mu.Unlock()
	for _, id := range g.approvals(s).ActiveIDs() {
		if lapsed[id] {
			g.endApproval(ctx, s, recordKey(from.kind, from.object), from.object, report.Held, g.counts(s, id))
		}
	}
}

// lapseUnheld uses up approvals of objects that are not held, once all owners match the settings.
// Otherwise an approval that arrives late, after another process saw the hold end, would allow a
// later deletion.
func (g *Gardenlet) lapseUnheld(ctx context.Context, seed *unstructured.Unstructured) {
	g.mu.Lock()
	s, assessed := g.published.settings, g.published.assessed
	g.mu.Unlock()
	if s == nil || s.publication.Digest != assessed {
		return
	}
	approvals := g.approvals(s)
	if len(approvals.Lapsed(nil)) == 0 { // no approval is unused
		return
	}
	now := g.report(nil)
	if now.Digest != assessed || len(now.Converging) > 0 || len(now.Failing) > 0 {
		return
	}
	for _, id := range approvals.Lapsed(reportedIDs(now.Held)) {
		g.endApproval(ctx, s, "", seed, nil, func() (string, bool) { return id, g.approvals(s).IsUnused(id) && g.isApproved(id) })
	}
}

// endApproval uses up an approval of objects that are no longer held, and reports it.
func (g *Gardenlet) endApproval(ctx context.Context, s *settings, key string, about *unstructured.Unstructured, held []permit.HeldObjects, counts func() (string, bool)) {
	given, err := g.noted.uses.RecordUse(ctx, key, nil, counts)
	if err != nil {
		shown, _ := counts()
		g.options.Log.Info("the approval of what is not held any more could not be used up yet", "approval", shown, "error", err)
	}
	if err == nil && given != "" {
		g.tell(about, reasonLapsed, lapsedText(given, s.landscape+" "+g.options.Seed, g.approvals(s), held))
	}
}

// lapsedText says that an approval has no effect, and lists the approve commands of the objects
// that are held now. The user may only know about an earlier hold.
func lapsedText(id, approve string, approvals permit.Approvals, held []permit.HeldObjects) string {
	text := fmt.Sprintf("nothing passes by approval %s: what it was given for is not held any more, and it does not count for what is held later; ", id)
	var now []string
	n := 0
	for _, h := range held {
		for _, o := range h.Objects {
			if n++; n <= shownHeld {
				now = append(now, fmt.Sprintf("%s (pergola approve %s/%s)", o.Ref, approve, approvals.NextID(o.Approval)))
			}
		}
	}
	switch {
	case n == 0:
		return text + "nothing is held now"
	case n > shownHeld:
		now = append(now, fmt.Sprintf("and %d more", n-shownHeld))
	}
	return text + "held now: " + strings.Join(now, ", ")
}

// reportedIDs returns the ids that approve the reported held deletions.
func reportedIDs(held []seedpublication.Held) map[string]bool {
	out := map[string]bool{}
	for _, h := range held {
		out[permit.TrimSuffix(h.Approval)], out[permit.TrimSuffix(h.Together)] = true, true
	}
	delete(out, "")
	return out
}

// noteUsed updates the annotation of the Seed; it sends a request only if the annotation differs.
func (g *Gardenlet) noteUsed(ctx context.Context) {
	s, seed := g.settingsInUse(), g.objects.get(kindSeed, "", g.options.Seed)
	if s == nil || seed == nil {
		return
	}
	patch, differs := seedpublication.NoteUsedApprovals(seed, g.approvals(s).Used)
	if !differs {
		return
	}
	if _, err := g.links.garden.MergePatch(ctx, apply.RefOf(seed), patch, "gardenlet", ""); err != nil && ctx.Err() == nil {
		g.options.Log.Info("used approvals could not be noted yet", "error", g.links.garden.Explain(apply.RefOf(seed), "note used approvals", err))
	}
}

// tellHeld reports each held deletion, its reasons and the command that approves it.
func (g *Gardenlet) tellHeld(from sources, s *settings, held []permit.HeldObjects) {
	approvals := g.approvals(s)
	for _, h := range held {
		var objects, reasons []string
		for i, o := range h.Objects {
			if i == shownHeld {
				objects = append(objects, fmt.Sprintf("and %d more", len(h.Objects)-i))
			} else if i < shownHeld {
				objects = append(objects, o.Ref.String())
			}
			if text := o.Reason.String(); !slices.Contains(reasons, text) {
				reasons = append(reasons, text)
			}
		}
		g.tell(from.object, "DeletionHeld", fmt.Sprintf("held on cluster %s: %s: %s; to let it pass once: pergola approve %s %s/%s",
			h.Cluster, strings.Join(objects, ", "), strings.Join(reasons, "; "), s.landscape, g.options.Seed, approvals.NextID(h.Approval)))
	}
}

// shownHeld is how many objects an Event names.
const shownHeld = 5
