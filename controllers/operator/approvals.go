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
)

// approvals are the ids by which the gate lets something pass: those of the object that were not used.
func approvals(object *landscapev1alpha1.Landscape) []string {
	return landscape.OpenApprovals(approvedHere(object.Spec.Approved), object.Status.UsedApprovals)
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

// passed notes that something passed by an approval.
func (j *job) passed(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.used, id) {
		j.used = append(j.used, id)
	}
}

// useUp notes in the status which approvals are spent, and forgets what the object does not have any more: those by which something passed,
// in a sync that went well, or one that failed and deleted something before; and those of what was held, and is not any more for another
// reason, once a whole sync has seen that. What is held anew needs another approval. It gives those by which something passed, as they were approved.
func (s *syncer) useUp(j *job, report *landscape.Report, complete bool) (spent []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var passed []string
	if complete || report.Written.Deleted+report.Written.Recreated > 0 {
		passed, j.used = j.used, nil
	}
	used := landscape.UseUp(s.object.Spec.Approved, s.status.now.UsedApprovals, passed)
	for _, id := range used {
		if !slices.Contains(s.status.now.UsedApprovals, id) {
			spent = append(spent, id)
		}
	}
	if complete {
		used = append(used, withdrawn(s.object.Spec.Approved, used, heldHere(s.status.now.Held), report)...)
	}
	s.status.now.UsedApprovals = used
	return spent
}

// passedBy begins the part of what is said of a sync that names the approvals by which something passed.
const passedBy = "passed by approval: "

// passedText names the approvals by which something passed in a sync; empty for none.
func passedText(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	if more := len(ids) - mostCommands; more > 0 {
		ids = append(ids[:mostCommands:mostCommands], fmt.Sprintf("and %d more", more))
	}
	return passedBy + strings.Join(ids, ", ")
}

// PassedBy is the part of the message of a sync that names the approvals by which something passed; empty where there is none.
func PassedBy(message string) string {
	for part := range strings.SplitSeq(message, "; ") {
		if strings.HasPrefix(part, passedBy) {
			return part
		}
	}
	return ""
}

// withdrawn are the approvals of what was held before and is not any more.
func withdrawn(approved, used []string, before []landscapev1alpha1.HeldDeletion, now *landscape.Report) []string {
	type object struct{ cluster, name string }
	held := map[object]bool{}
	for _, h := range now.Held {
		for _, o := range h.Objects {
			held[object{h.Cluster, o.Ref.String()}] = true
		}
	}
	waits := map[string]bool{}
	for _, h := range before {
		for _, id := range []string{h.Approval, h.Together} {
			waits[id] = waits[id] || held[object{h.Cluster, h.Object}]
		}
	}
	var out []string
	for _, id := range approved {
		if still, was := waits[id]; was && !still && !slices.Contains(used, id) {
			out = append(out, id)
		}
	}
	return out
}

// addFormer adds to the report of a sync that failed what was held before, as far as it may be held still: a sync that did not get to the end
// has not seen all that there is. What has passed by an approval is not.
func (j *job) addFormer(report *landscape.Report, before []landscapev1alpha1.HeldDeletion) {
	j.mu.Lock()
	passed := slices.Clone(j.used)
	j.mu.Unlock()
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
		if known[h.Cluster+" "+h.Object] || id != "" && (slices.Contains(passed, id) || slices.Contains(passed, together)) {
			continue
		}
		n := slices.IndexFunc(report.Held[first:], func(o owner.HeldObjects) bool { return o.Cluster == h.Cluster && o.Approval == together })
		if n < 0 {
			n, report.Held = len(report.Held)-first, append(report.Held, owner.HeldObjects{Cluster: h.Cluster, Approval: together})
		}
		report.Held[first+n].Objects = append(report.Held[first+n].Objects, apply.Held{Ref: refOf(h.Object), Reason: h.Reason, Approval: id})
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
