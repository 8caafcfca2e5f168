package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// approvals are the ids by which the gate lets something pass: those of the object that were not used.
func approvals(object *landscapev1alpha1.Landscape) []string {
	return permit.OpenIDs(approvedHere(object.Spec.Approved), object.Status.UsedApprovals)
}

// mostCommands is how many ids a command is shown with.
const mostCommands = 5

// toApprove is how somebody lets pass what is held, for those who have pushed it.
func (s *syncer) toApprove() string { return toApprove(s.status.now.Held, s.key.String()) }

func toApprove(held []landscapev1alpha1.HeldDeletion, landscape string) string {
	var ids []string
	for _, h := range held {
		if id := ApprovalText(h.Cluster, cmp.Or(h.Together, h.Approval)); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	shown := strings.Join(ids, " ")
	switch {
	case len(ids) == 0:
		return fmt.Sprintf(": pergola history %s shows what and why", landscape)
	case len(ids) > mostCommands:
		shown = "ID..."
	}
	return fmt.Sprintf(": pergola history %[1]s shows what and why, pergola approve %[1]s %[2]s lets it pass", landscape, shown)
}

// shownApproval is the id that people approve something by now. Those who keep what is applied call it, from other goroutines than that of the syncer.
func (s *syncer) shownApproval(id string) string {
	return ask(s, id, func() string { return permit.ShownID(id, s.status.now.UsedApprovals) })
}

// take lets something pass by an approval in a sync. That it is used is in the status before: whatever becomes of this process, and whichever revision
// comes next, an approval lets nothing else pass. Only the sync that goes on may use one; what was prepared before, or is only kept, may know of one
// that is used since. Those who apply call it, from other goroutines than that of the syncer.
func (s *syncer) take(j *job, id string) bool {
	return ask(s, false, func() bool { return s.jobs.active == j && j.applying && s.noteTaken(j, id) })
}

// noteTaken notes that a sync uses an approval, and tells whether it may.
func (s *syncer) noteTaken(j *job, id string) bool {
	if slices.Contains(j.given.used, id) {
		return true
	}
	before := s.status.now.UsedApprovals
	shown := permit.ShownID(id, before)
	if !slices.Contains(approvedHere(s.object.Spec.Approved), shown) {
		return false
	}
	s.status.now.UsedApprovals = append(slices.Clone(before), shown)
	s.status.flush(s.life.alive) // should somebody else have written it, the next look at it ends this syncer
	if !slices.Contains(s.status.written.UsedApprovals, shown) {
		s.status.now.UsedApprovals = before
		s.Log.Warn("that an approval is used cannot be noted, so that nothing passes by it", "landscape", s.key.String(), "approval", shown)
		return false
	}
	j.given.used, j.given.spent = append(j.given.used, id), append(j.given.spent, shown)
	return true
}

// useUp ends the use of approvals by a sync: what is held anew needs others, also where the sync has failed, for what it has asked a server to
// delete may be gone all the same. Once a whole sync has seen what is held, approvals of anything else are used, too: they have lapsed. It gives those by
// which something passed, as they were approved.
func (s *syncer) useUp(j *job, report *landscape.Report, complete bool) (spent, lapsed []string) {
	spent = j.given.spent
	j.given.used, j.given.spent = nil, nil
	used := permit.UseUp(s.object.Spec.Approved, s.status.now.UsedApprovals, nil)
	if complete {
		lapsed = withdrawn(j.given.approved, used, report)
	}
	s.status.now.UsedApprovals = append(used, lapsed...)
	return spent, lapsed
}

// lapsedText says of approvals that nothing passes by them.
func lapsedText(ids []string) string {
	return fmt.Sprintf("nothing passes by approval %s: what it was given for is not held, or not all of it, and it does not count for what is held later; "+
		"status.held has what is held now", strings.Join(ids, ", "))
}

// PassedText names the approvals by which something passed in a sync; empty for none.
func PassedText(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	if more := len(ids) - mostCommands; more > 0 {
		ids = append(ids[:mostCommands:mostCommands], fmt.Sprintf("and %d more", more))
	}
	return "passed by approval: " + strings.Join(ids, ", ")
}

// withdrawn are the approvals by which nothing passes that is held: those of objects that are not held any more, or not by themselves, and those of
// several of which not all are held now. Kept for later they would let pass what nobody has seen held.
func withdrawn(approved, used []string, now *landscape.Report) []string {
	waits := map[string]bool{}
	for _, h := range now.Held {
		waits[h.Approval] = true
		for _, o := range h.Objects {
			waits[o.Approval] = true
		}
	}
	var out []string
	for _, id := range approvedHere(approved) {
		plain, _, _ := strings.Cut(id, "-")
		if !waits[plain] && !slices.Contains(used, id) {
			out = append(out, id)
		}
	}
	return out
}

// addFormer adds to the report of a sync that failed what was held before, as far as it may be held still: a sync that did not get to the end
// has not seen all that there is. What has passed by an approval is not.
func (j *job) addFormer(report *landscape.Report, before []landscapev1alpha1.HeldDeletion) {
	known := map[string]bool{}
	for _, h := range report.Held {
		for _, o := range h.Objects {
			known[h.Cluster+" "+o.Ref.String()] = true
		}
	}
	first := len(report.Held)
	for _, h := range before {
		id, _, _ := strings.Cut(h.Approval, "-")
		together, _, _ := strings.Cut(cmp.Or(h.Together, h.Approval), "-")
		if known[h.Cluster+" "+h.Object] || id != "" && (slices.Contains(j.given.used, id) || slices.Contains(j.given.used, together)) {
			continue
		}
		n := slices.IndexFunc(report.Held[first:], func(o owner.HeldObjects) bool { return o.Cluster == h.Cluster && o.Approval == together })
		if n < 0 {
			n, report.Held = len(report.Held)-first, append(report.Held, owner.HeldObjects{Cluster: h.Cluster, Approval: together})
		}
		report.Held[first+n].Objects = append(report.Held[first+n].Objects, apply.Held{Ref: refOf(h.Object), Reason: h.Why, Approval: id})
	}
}

// refOf reads an object as status.held names it, without its group.
func refOf(object string) apply.Ref {
	kind, name, _ := strings.Cut(object, " ")
	out := apply.Ref{Kind: kind, Name: name}
	if namespace, rest, found := strings.Cut(name, "/"); found {
		out.Namespace, out.Name = namespace, rest
	}
	return out
}

// heldCount is how many deletions and recreations wait.
func heldCount(report *landscape.Report) int {
	n := 0
	for _, h := range report.Held {
		n += len(h.Objects)
	}
	return n
}

// waitingForApproval is how much waits for an approval, with what the reports of seeds leave out.
func waitingForApproval(held []landscapev1alpha1.HeldDeletion) int {
	n := 0
	for _, h := range held {
		switch {
		case h.Approval != "":
			n++
		case h.Why.Code == landscapev1alpha1.HeldReport:
			n += h.Why.Count
		}
	}
	return n
}

func heldOf(report *landscape.Report, used []string) []landscapev1alpha1.HeldDeletion {
	out := report.HeldDeletions()
	out = out[:min(len(out), landscapev1alpha1.MaximumHeld)]
	for i := range out {
		out[i].Approval, out[i].Together = permit.ShownID(out[i].Approval, used), permit.ShownID(out[i].Together, used)
	}
	return out
}
