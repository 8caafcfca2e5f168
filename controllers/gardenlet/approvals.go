package gardenlet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// An approval counts once for a seed, as it does for the operator: what has let something pass here is noted in an annotation of the Seed, which
// outlives the process, and which a gardenlet may write. An id that leaves the publication is forgotten, and can be given anew.

// usedApprovals are the ids that have let something pass on this seed: those that the Seed has, and those that could not be noted there yet.
func (g *Gardenlet) usedApprovals(s *settings) []string {
	used := seedpublication.UsedApprovals(g.objects.get(kindSeed, "", g.Seed))
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range g.used {
		if !slices.Contains(used, id) {
			used = append(used, id)
		}
	}
	return landscape.UseUp(s.approved, used, nil)
}

// reconcilerFor is the one of the settings, with the approvals that were not used yet; what passes by them is noted at a place.
func (g *Gardenlet) reconcilerFor(s *settings, at *site, from sources, o *owner.Owner) *owner.Reconciler {
	r := *s.reconciler
	r.Gate.Reviewed = g.reviewed(from, o.Input.Owner, s)
	r.Gate.Approved = map[string]bool{}
	for _, id := range landscape.OpenApprovals(s.approved, g.usedApprovals(s)) {
		r.Gate.Approved[id] = true
	}
	r.Gate.Passed = at.pass
	return &r
}

// pass notes that something passed by an approval. It is called by many goroutines.
func (s *site) pass(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed == nil {
		s.passed = map[string]bool{}
	}
	s.passed[id] = true
}

// useUp notes what passed at a place that went well since. From now on it is held again; whoever works on the owner calls it.
func (g *Gardenlet) useUp(ctx context.Context, at *site, s *settings) {
	at.mu.Lock()
	passed := slices.Sorted(maps.Keys(at.passed))
	at.passed = nil
	at.mu.Unlock()
	if len(passed) == 0 {
		return
	}
	before := g.usedApprovals(s)
	after := landscape.UseUp(s.approved, before, passed)
	g.mu.Lock()
	g.used = after
	g.mu.Unlock()
	g.Log.Info("approvals were used", "approvals", strings.Join(after, ", "))
	at.mu.Lock()
	from, o := at.from, at.owner
	at.mu.Unlock()
	next := g.reconcilerFor(s, at, from, o)
	at.mu.Lock()
	at.reconciler = next
	at.mu.Unlock()
	if err := g.noteUsed(ctx); err != nil {
		g.Log.Info("used approvals could not be noted yet", "error", err)
	}
}

// withdraw uses up approvals of what was held before and is not any more for another reason, also those that come late: what is held anew needs
// another one. It is called after a run that has seen everything.
func (g *Gardenlet) withdraw(at *site, s *settings, o *unstructured.Unstructured, report *owner.Report) {
	if report == nil {
		return
	}
	before := map[string][]string{}
	if former := seedpublication.ReadReport(g.objects.get(kindSeed, "", g.Seed)); former != nil {
		before = heldBefore(former, reportedName(o))
	}
	open := landscape.OpenApprovals(s.approved, g.usedApprovals(s))
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.judged { // this process knows better than what was reported
		before = heldByID(at.held)
	}
	at.lapse(before, heldByID(report.Held))
	for _, id := range open {
		if at.lapsed[id] {
			if at.passed == nil {
				at.passed = map[string]bool{}
			}
			at.passed[id] = true
		}
	}
}

// lapse notes the ids of which all objects were held before and none is now, unless something passed by them; what is held again has not lapsed.
func (s *site) lapse(before, now map[string][]string) {
	if s.lapsed == nil {
		s.lapsed = map[string]bool{}
	}
	held := map[string]bool{}
	for id, objects := range now {
		delete(s.lapsed, id)
		for _, o := range objects {
			held[o] = true
		}
	}
	for id, objects := range before {
		if !s.passed[id] && !slices.ContainsFunc(objects, func(o string) bool { return held[o] }) {
			s.lapsed[id] = true
		}
	}
}

// heldByID gives what is held by the ids that let it pass.
func heldByID(held []owner.HeldObjects) map[string][]string {
	out := map[string][]string{}
	for _, h := range held {
		for _, o := range h.Objects {
			object := h.Cluster + " " + o.Ref.String()
			for _, id := range []string{o.Approval, h.Approval} {
				if id != "" && !slices.Contains(out[id], object) {
					out[id] = append(out[id], object)
				}
			}
		}
	}
	return out
}

// heldBefore gives the same of what a former process has reported of an owner.
func heldBefore(r *seedpublication.Report, name string) map[string][]string {
	out := map[string][]string{}
	for _, h := range r.Held {
		if h.Owner != name {
			continue
		}
		for _, shown := range []string{h.Approval, h.Together} {
			if id, _, _ := strings.Cut(shown, "-"); id != "" {
				out[id] = append(out[id], h.Cluster+" "+h.Object)
			}
		}
	}
	return out
}

// forgetApprovals drops what is not approved any more: an id that is taken back and given again counts anew.
func (g *Gardenlet) forgetApprovals(s *settings) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used = landscape.UseUp(s.approved, g.used, nil)
}

// noteUsed brings the annotation of the Seed up to date; it costs a request only when it is not.
func (g *Gardenlet) noteUsed(ctx context.Context) error {
	g.mu.Lock()
	s := g.settings
	g.mu.Unlock()
	seed := g.objects.get(kindSeed, "", g.Seed)
	if s == nil || seed == nil {
		return nil
	}
	used := g.usedApprovals(s)
	patch, differs := seedpublication.NoteUsedApprovals(seed, used)
	if !differs {
		return nil
	}
	if _, err := g.garden.MergePatch(ctx, apply.RefOf(seed), patch, "gardenlet", ""); err != nil {
		return g.garden.Explain(apply.RefOf(seed), "note used approvals", err)
	}
	return nil
}

// tellHeld says of each deletion that is held what it is, why, and what lets it pass.
func (g *Gardenlet) tellHeld(from sources, s *settings, held []owner.HeldObjects) {
	used := g.usedApprovals(s)
	for _, h := range held {
		var objects, reasons []string
		for i, o := range h.Objects {
			if i == shownHeld {
				objects = append(objects, fmt.Sprintf("and %d more", len(h.Objects)-i))
			} else if i < shownHeld {
				objects = append(objects, o.Ref.String())
			}
			if !slices.Contains(reasons, o.Reason) {
				reasons = append(reasons, o.Reason)
			}
		}
		g.tell(from.object, "DeletionHeld", fmt.Sprintf("held on cluster %s: %s: %s; to let it pass once: pergola approve %s %s/%s",
			h.Cluster, strings.Join(objects, ", "), strings.Join(reasons, "; "), s.landscape, g.Seed, landscape.ShownApproval(h.Approval, used)))
	}
}

// shownHeld is how many objects an Event names.
const shownHeld = 5
