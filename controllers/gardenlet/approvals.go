// SPDX-License-Identifier: Apache-2.0

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
// before anything is deleted (approvaluses.go) and published in an annotation of the Seed. An id
// that leaves the publication is forgotten and can be given again.

// approvals returns the approvals of the settings. Used are those that the Seed lists and those
// that were recorded on the seed.
func (g *Gardenlet) approvals(s *settings) permit.Approvals {
	used := append(seedpublication.UsedApprovals(g.objects.get(kindSeed, "", g.options.Seed)), g.seedRecords.approvalUses.IDs()...)
	slices.Sort(used)
	return permit.Approvals{Given: s.approvalIDs, Used: slices.Compact(used)}.DropWithdrawn()
}

// reconcilerFor returns a copy of the settings' reconciler for one owner. Its gate checks whether
// each approval counts.
func (g *Gardenlet) reconcilerFor(ctx context.Context, s *settings, at *ownerWorker, from renderSources, o owner.Owner) *owner.Reconciler {
	r := *s.reconciler
	r.Gate.Reviewed = g.reviewCheck(from, o.Input.Owner, s)
	r.Gate.Approved = map[string]bool{}
	for _, id := range s.approvalIDs {
		r.Gate.Approved[permit.TrimSuffix(id)] = true
	}
	for _, p := range g.seedRecords.approvalUses.DeletableObjects() {
		r.Gate.Approved[permit.ApprovalID(g.connections.local.Name(), p.Object)] = true
	}
	ctx = context.WithoutCancel(ctx) // care uses the gate after the job has ended, too
	r.Gate.Ledger = func(id string, refs []change.Ref) bool {
		return g.useApproval(ctx, at, s, convergenceRecordKey(from.kind, from.object), id, refs)
	}
	return &r
}

// lapseApprovals uses up approvals of objects that were held and no longer are, for a reason other
// than an approval. It also uses up approvals that arrive later: a new hold needs a new one. Call
// it only after a complete run.
func (g *Gardenlet) lapseApprovals(ctx context.Context, at *ownerWorker, s *settings, from renderSources, report *owner.Report) {
	if report == nil {
		return
	}
	former := seedpublication.ReadSeedReport(g.objects.get(kindSeed, "", g.options.Seed))
	var before map[string]bool
	at.mu.Lock()
	switch {
	case at.isHeldKnown: // this process knows more than the last report
		before = permit.HeldIDs(at.held)
	case former != nil:
		before = reportedApprovalIDs(heldByOwner(former.Held, reportOwnerName(from.object)))
	}
	lapsed := permit.LapsedAfterRun(at.approvalUsage.lapsedIDs, before, permit.HeldIDs(report.Held), at.approvalUsage.used)
	at.approvalUsage.used, at.approvalUsage.lapsedIDs = nil, lapsed
	at.mu.Unlock()
	for _, id := range g.approvals(s).ActiveIDs() {
		if lapsed[id] {
			g.expireApproval(ctx, s, convergenceRecordKey(from.kind, from.object), from.object, report.Held, g.approvalCheck(s, id))
		}
	}
}

// lapseUnheldApprovals uses up approvals of objects that are not held, once all owners match the
// settings. Otherwise an approval that arrives late, after another process saw the hold end, would
// allow a later deletion.
func (g *Gardenlet) lapseUnheldApprovals(ctx context.Context, seed *unstructured.Unstructured) {
	g.mu.Lock()
	s, assessed := g.publication.settings, g.publication.syncedDigest
	g.mu.Unlock()
	if s == nil || s.publication.Digest != assessed {
		return
	}
	approvals := g.approvals(s)
	if len(approvals.LapsedIDs(nil)) == 0 { // no approval is unused
		return
	}
	now := g.report(nil)
	if now.Digest != assessed || len(now.Converging) > 0 || len(now.Failing) > 0 {
		return
	}
	for _, id := range approvals.LapsedIDs(reportedApprovalIDs(now.Held)) {
		g.expireApproval(ctx, s, "", seed, nil, func() (string, bool) { return id, g.approvals(s).IsUnused(id) && g.isApproved(id) })
	}
}

// expireApproval uses up an approval of objects that are no longer held, and reports it.
func (g *Gardenlet) expireApproval(ctx context.Context, s *settings, key string, about *unstructured.Unstructured, held []permit.HeldObjects, counts func() (string, bool)) {
	given, err := g.seedRecords.approvalUses.RecordUse(ctx, key, nil, counts)
	if err != nil {
		shown, _ := counts()
		g.options.Log.Info("cannot record a lapsed approval yet", "approval", shown, "error", err)
	}
	if err == nil && given != "" {
		g.warn(about, reasonApprovalLapsed, lapsedApprovalText(given, s.landscape+" "+g.options.Seed, g.approvals(s), held))
	}
}

// lapsedApprovalText says that an approval has no effect, and lists the approve commands of the
// objects that are held now. The user may only know about an earlier hold.
func lapsedApprovalText(id, approve string, approvals permit.Approvals, held []permit.HeldObjects) string {
	text := fmt.Sprintf("approval %s lapsed without effect: its deletions are no longer held, and it does not count later; ", id)
	var now []string
	n := 0
	for _, h := range held {
		for _, o := range h.Objects {
			if n++; n <= maxShownDeletions {
				now = append(now, fmt.Sprintf("%s (pergola approve %s/%s)", o.Ref, approve, approvals.NextID(o.ApprovalID)))
			}
		}
	}
	switch {
	case n == 0:
		return text + "nothing is held now"
	case n > maxShownDeletions:
		now = append(now, fmt.Sprintf("and %d more", n-maxShownDeletions))
	}
	return text + "held now: " + strings.Join(now, ", ")
}

// reportedApprovalIDs returns the ids that approve the reported held deletions.
func reportedApprovalIDs(held []seedpublication.HeldObject) map[string]bool {
	out := map[string]bool{}
	for _, h := range held {
		out[permit.TrimSuffix(h.Approval)], out[permit.TrimSuffix(h.GroupApproval)] = true, true
	}
	delete(out, "")
	return out
}

// publishUsedApprovals updates the annotation of the Seed; it sends a request only if the
// annotation differs.
func (g *Gardenlet) publishUsedApprovals(ctx context.Context) {
	s, seed := g.currentSettings(), g.objects.get(kindSeed, "", g.options.Seed)
	if s == nil || seed == nil {
		return
	}
	patch, differs := seedpublication.UsedApprovalsPatch(seed, g.approvals(s).Used)
	if !differs {
		return
	}
	if _, err := g.connections.garden.MergePatch(ctx, apply.RefOf(seed), patch, "gardenlet", ""); err != nil && ctx.Err() == nil {
		g.options.Log.Info("cannot record used approvals yet", "error", g.connections.garden.Explain(apply.RefOf(seed), "record used approvals", err))
	}
}

// reportHeldDeletions reports each held deletion, its reasons and the command that approves it.
func (g *Gardenlet) reportHeldDeletions(from renderSources, s *settings, held []permit.HeldObjects) {
	approvals := g.approvals(s)
	for _, h := range held {
		var objects, reasons []string
		for i, o := range h.Objects {
			if i == maxShownDeletions {
				objects = append(objects, fmt.Sprintf("and %d more", len(h.Objects)-i))
			} else if i < maxShownDeletions {
				objects = append(objects, o.Ref.String())
			}
			if text := o.Reason.String(); !slices.Contains(reasons, text) {
				reasons = append(reasons, text)
			}
		}
		g.warn(from.object, "DeletionHeld", fmt.Sprintf("held on cluster %s: %s: %s; to approve it once: pergola approve %s %s/%s",
			h.Cluster, strings.Join(objects, ", "), strings.Join(reasons, "; "), s.landscape, g.options.Seed, approvals.NextID(h.Approval)))
	}
}

// maxShownDeletions is how many objects an Event names.
const maxShownDeletions = 5
