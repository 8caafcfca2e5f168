// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// operatorApprovals are the approvals that count for the operator's own clusters.
func operatorApprovals(object *landscapev1alpha1.Landscape, used []string) permit.Approvals {
	return permit.Approvals{Given: permit.ApprovalsForSeed("", object.Spec.Approved), Used: used}
}

// maxShownApprovals is the maximum number of approval ids in a message.
const maxShownApprovals = 5

// approveCommand returns the approve command for people who follow a sync.
func (s *landscapeReconciler) approveCommand() string {
	return approveCommandFor(s.status.desired.Held, s.key.String())
}

func approveCommandFor(held []landscapev1alpha1.HeldDeletion, landscape string) string {
	var ids []string
	for _, h := range held {
		if id := ApprovalText(h.Cluster, cmp.Or(h.Together, h.Approval)); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	shown := strings.Join(ids, " ")
	switch {
	case len(ids) == 0:
		return fmt.Sprintf(": pergola history %s lists them with reasons", landscape)
	case len(ids) > maxShownApprovals:
		shown = "ID..."
	}
	return fmt.Sprintf(": pergola history %[1]s lists them with reasons, pergola approve %[1]s %[2]s approves them", landscape, shown)
}

// shownApproval returns the approval id that people use. Apply goroutines call it.
func (s *landscapeReconciler) shownApproval(id string) string {
	return queryReconciler(s, id, func() string { return operatorApprovals(s.object, s.status.desired.UsedApprovals).NextID(id) })
}

// useApproval consumes an approval in a sync. The status records that first, so that the approval
// never counts again, even after a crash or for another revision. Only the running sync may consume
// one: a preparation or a maintaining job may not know of later uses. Apply goroutines call it.
func (s *landscapeReconciler) useApproval(j *job, id string) bool {
	return queryReconciler(s, false, func() bool { return s.jobs.activeJob == j && j.isApplying && s.recordApprovalUse(j, id) })
}

// recordApprovalUse records that a sync uses an approval, and reports whether it may.
func (s *landscapeReconciler) recordApprovalUse(j *job, id string) bool {
	if j.permissions.hasUsed(id) {
		return true
	}
	before := s.status.desired.UsedApprovals
	shown, counts := operatorApprovals(s.object, before).IsApproved(id)
	if !counts {
		return false
	}
	s.status.desired.UsedApprovals = append(slices.Clone(before), shown)
	// If someone else wrote the status, the next step ends this syncer.
	s.status.writeIfChanged(s.lifetime.ctx)
	if !slices.Contains(s.status.written.UsedApprovals, shown) {
		s.status.desired.UsedApprovals = before
		s.operator.role.Log.Warn("the use of an approval cannot be recorded, so the approval has no effect", "landscape", s.key.String(), "approval", shown)
		return false
	}
	j.permissions.usedApprovals = append(j.permissions.usedApprovals, shown)
	return true
}

// finishApprovals ends the use of approvals by a sync, even a failed one: its deletions may have
// succeeded. Anything held later needs new approvals. A complete sync also uses up the approvals of
// everything that is not held: they lapse. The results have the ids as they were approved.
func (s *landscapeReconciler) finishApprovals(j *job, report *landscape.RunReport, complete bool) (spent, lapsed []string) {
	spent = j.permissions.usedApprovals
	j.permissions.usedApprovals = nil
	known := operatorApprovals(s.object, s.status.desired.UsedApprovals).DropWithdrawn()
	if complete {
		known.Given = permit.ApprovalsForSeed("", j.permissions.approved)
		lapsed = known.LapsedIDs(permit.HeldIDs(report.Held))
	}
	s.status.desired.UsedApprovals = append(known.Used, lapsed...)
	return spent, lapsed
}

// lapsedText says that approvals lapsed.
func lapsedText(ids []string) string {
	return fmt.Sprintf("approval %s lapsed without effect: its deletions are not all held now, and it does not count later; "+
		"status.held lists the current ones", strings.Join(ids, ", "))
}

// UsedApprovalsText names the approvals that a sync used; it is empty for none.
func UsedApprovalsText(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	if more := len(ids) - maxShownApprovals; more > 0 {
		ids = append(ids[:maxShownApprovals:maxShownApprovals], fmt.Sprintf("and %d more", more))
	}
	return "approvals used: " + strings.Join(ids, ", ")
}

// addPreviouslyHeld adds previously held deletions to the report of a failed sync, except the
// approved ones.
func (j *job) addPreviouslyHeld(report *landscape.RunReport, before []landscapev1alpha1.HeldDeletion) {
	var former []permit.HeldObjects
	for _, h := range before {
		if h.Why.IsZero() {
			h.Why.Detail = h.Reason // written by an older version
		}
		id, together := permit.TrimSuffix(h.Approval), permit.TrimSuffix(cmp.Or(h.Together, h.Approval))
		if j.permissions.hasUsed(id) || j.permissions.hasUsed(together) {
			continue
		}
		n := slices.IndexFunc(former, func(o permit.HeldObjects) bool { return o.Cluster == h.Cluster && o.Approval == together })
		if n < 0 {
			n, former = len(former), append(former, permit.HeldObjects{Cluster: h.Cluster, Approval: together})
		}
		former[n].Objects = append(former[n].Objects, apply.HeldObject{Ref: parseObjectRef(h.Object), Reason: h.Why, ApprovalID: id})
	}
	report.Held = permit.WithUnprocessed(report.Held, former)
}

// parseObjectRef parses an object of status.held, which has no API group.
func parseObjectRef(object string) apply.Ref {
	kind, name, _ := strings.Cut(object, " ")
	out := apply.Ref{Kind: kind, Name: name}
	if namespace, rest, found := strings.Cut(name, "/"); found {
		out.Namespace, out.Name = namespace, rest
	}
	return out
}

// heldCount returns how many deletions and recreations are held.
func heldCount(report *landscape.RunReport) int {
	n := 0
	for _, h := range report.Held {
		n += len(h.Objects)
	}
	return n
}

// countAwaitingApproval returns how many held deletions need an approval, also unreported ones.
func countAwaitingApproval(held []landscapev1alpha1.HeldDeletion) int {
	n := 0
	for _, h := range held {
		switch {
		case h.Approval != "":
			n++
		case h.Why.Code == landscapev1alpha1.HeldIncompleteReport:
			n += h.Why.Count
		}
	}
	return n
}

func heldDeletionsOf(report *landscape.RunReport, approvals permit.Approvals) []landscapev1alpha1.HeldDeletion {
	out := report.HeldDeletions()
	out = out[:min(len(out), landscapev1alpha1.MaxHeldDeletions)]
	for i := range out {
		out[i].Approval, out[i].Together = approvals.NextID(out[i].Approval), approvals.NextID(out[i].Together)
	}
	return out
}
