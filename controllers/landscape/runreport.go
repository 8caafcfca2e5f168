// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// RunReport is the result of a run.
type RunReport struct {
	Owners []*owner.Report `json:"owners"`
	// Held deletions, with the ids that approve them.
	Held []permit.HeldObjects `json:"held,omitempty"`
	// Changed is the number of written objects of owners and declarations; Written has the details.
	Changed int                       `json:"changed"`
	Written changecounts.ChangeCounts `json:"written"`
	// HandedOver are declared fields that controllers own.
	HandedOver []change.HandedOver `json:"handedOver,omitempty"`
	// Operations are the operations of operations/ that were executed, in this run or before,
	// newest first.
	Operations []landscapev1alpha1.OperationRecord `json:"operations,omitempty"`
	// PendingOperations are pending operations of operations/: not requested, not started, or
	// expired.
	PendingOperations []PendingOperation `json:"waitingOperations,omitempty"`
}

// snapshot returns a copy, because repairs between two runs add to the report.
func (r *RunReport) snapshot() *RunReport {
	out := *r
	out.Owners, out.HandedOver, out.Operations, out.PendingOperations = slices.Clone(r.Owners), slices.Clone(r.HandedOver), slices.Clone(r.Operations), slices.Clone(r.PendingOperations)
	out.Held = slices.Clone(r.Held)
	for i := range out.Held {
		out.Held[i].Objects = slices.Clone(out.Held[i].Objects)
	}
	return &out
}

// PendingOperation is a pending operation of operations/. It is not a failure: other work
// continues.
type PendingOperation struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Operation string `json:"operation"`
	// Reason says what it waits for, and how to withdraw it.
	Reason string `json:"reason"`
	// PortableReason is Reason for people who may use another cluster.
	PortableReason string `json:"-"`
	// Expired means that it was not executed in time and is never executed.
	Expired bool `json:"expired,omitempty"`
}

func (w PendingOperation) String() string { return w.text(w.Reason) }

// PortableText returns the text for people who may use another cluster.
func (w PendingOperation) PortableText() string { return w.text(w.PortableReason) }

func (w PendingOperation) text(reason string) string {
	ranOut := ""
	if w.Expired {
		ranOut = ", has expired and is never executed"
	}
	return fmt.Sprintf("operation %s, %s on %s%s: %s", w.ID, w.Operation, w.Object, ranOut, reason)
}

func (c *Converger) reportObject(owner, bundle string, r apply.ObjectResult) {
	c.runs.RecordResult(r)
	if c.options.Listeners.OnObject != nil {
		c.options.Listeners.OnObject(owner, bundle, r)
	}
}

func (c *Converger) countWrites(result *apply.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentRun.report.Written.Add(result.Objects...)
	c.currentRun.report.Changed = c.currentRun.report.Written.Total()
}

func (c *Converger) addHeld(cluster string, held []apply.HeldObject, id string) {
	if len(held) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentRun.report.Held = append(c.currentRun.report.Held, permit.HeldObjects{Cluster: cluster, Objects: held, Approval: id})
}

// maxNamedHeld limits the objects that HeldText names.
const maxNamedHeld = 3

// HeldText returns how many deletions and recreations wait for an approval, and names those without
// one. It is empty if nothing is held.
func (r *RunReport) HeldText() string {
	waiting := 0
	var stuck []string
	for _, h := range r.Held {
		if h.Approval != "" {
			waiting += len(h.Objects)
			continue
		}
		for _, o := range h.Objects {
			stuck = append(stuck, fmt.Sprintf("%s on cluster %s: %s", o.Ref, h.Cluster, o.Reason))
		}
	}
	var parts []string
	switch {
	case waiting == 1:
		parts = append(parts, "1 deletion or recreation waits for an approval")
	case waiting > 1:
		parts = append(parts, fmt.Sprintf("%d deletions and recreations wait for an approval", waiting))
	}
	if n := len(stuck); n > maxNamedHeld {
		stuck = append(stuck[:maxNamedHeld:maxNamedHeld], fmt.Sprintf("and %d more", n-maxNamedHeld))
	}
	return strings.Join(append(parts, stuck...), "; ")
}

// MoreHeldText describes the held objects beyond the limit of a seed's report.
func MoreHeldText(n int) string {
	return fmt.Sprintf("%d more are held: see Events DeletionHeld", n)
}

// HeldDeletions returns the held objects for status.held.
func (r *RunReport) HeldDeletions() []landscapev1alpha1.HeldDeletion {
	var out []landscapev1alpha1.HeldDeletion
	for _, h := range r.Held {
		for _, o := range h.Objects {
			held := landscapev1alpha1.HeldDeletion{Cluster: h.Cluster, Object: o.Ref.String(), Reason: o.Reason.String(), Why: o.Reason, Approval: o.ApprovalID}
			if h.Approval != o.ApprovalID {
				held.Together = h.Approval
			}
			out = append(out, held)
		}
	}
	return out
}
