// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

type Drift struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// Description is the text of the drift: deleted, or the changed fields and their managers.
	Description string `json:"what"`
	Repaired    bool   `json:"repaired"`
	// HandedOver means that nothing is repaired: the change is the task of its manager.
	HandedOver bool   `json:"handedOver,omitempty"`
	Error      string `json:"error,omitempty"`
	// HoldText is why the recreation is held, for people; HoldReason is the same as fields;
	// Approval is the id to approve it. It is empty if it is not held.
	HoldText   string        `json:"held,omitempty"`
	HoldReason change.Reason `json:"why,omitzero"`
	Approval   string        `json:"approval,omitempty"`
	At         time.Time     `json:"at"`
	// OpenProblems lists why objects, including this one, differ from Git: one text for each failed
	// repair.
	OpenProblems []string `json:"standing,omitempty"`
}

// driftSet identifies a set of objects on a cluster.
type driftSet struct{ cluster, name string }

// repairProblems contains the failed repairs of a set.
type repairProblems struct {
	// problems are the problems by object.
	problems map[apply.Ref]string
	// lastReported is the last drift event that was reported as repaired. The event repeats while
	// other objects of its set fail.
	lastReported string
}

// repairDrift applies the set of an object again: unchanged objects cost nothing. It returns false
// if that failed, even for another object of the set.
func (c *Converger) repairDrift(ctx context.Context, e apply.DriftEvent) bool {
	found, ok := c.repairAndReport(ctx, e, func() (bool, error) { return c.repairDeclared(ctx, e) })
	if !found {
		return c.members.fleet.Repair(ctx, e)
	}
	return ok
}

// repairAndReport runs a repair and reports the result. The repair returns whether it found the
// set.
func (c *Converger) repairAndReport(ctx context.Context, e apply.DriftEvent, repair func() (bool, error)) (found, ok bool) {
	c.mu.Lock()
	before := len(c.currentRun.report.Held)
	c.mu.Unlock()
	c.setRepairing(true)
	found, err := repair()
	c.setRepairing(false)
	if !found || ctx.Err() != nil {
		return found, err == nil
	}
	problems := problemsByObject(e.Ref, err)
	held, approval := c.recreationHold(before, e.Cluster, e.Ref)
	c.mu.Lock()
	stood := maps.Clone(c.drift.bySet[driftSet{e.Cluster, e.Set}].problems)
	c.mu.Unlock()
	for ref := range stood { // held and reported before: still true
		if why, id := c.recreationHold(before, e.Cluster, ref); !why.IsZero() && problems[ref] == "" {
			problems[ref] = holdText(why, id)
		}
	}
	for ref := range c.takeSkipped() {
		if problems[ref] == "" && (ref == e.Ref || stood[ref] != "") {
			problems[ref] = skippedRepairText
		}
	}
	if !held.IsZero() && problems[e.Ref] == "" {
		problems[e.Ref] = holdText(held, approval)
	}
	set := driftSet{e.Cluster, e.Set}
	c.mu.Lock()
	if c.drift.bySet == nil {
		c.drift.bySet = map[driftSet]repairProblems{}
	}
	former := c.drift.bySet[set]
	this := fmt.Sprint(e.Ref, e.At.UnixNano())
	next := repairProblems{problems: problems, lastReported: former.lastReported}
	if problems[e.Ref] == "" {
		next.lastReported = this
	}
	c.drift.bySet[set] = next
	all := c.openProblemsLocked()
	c.mu.Unlock()

	d := Drift{Cluster: e.Cluster, Object: e.Ref, Description: DescribeDrift(e), At: c.options.Clock.Now(), Error: problems[e.Ref], HoldText: held.String(), HoldReason: held, Approval: approval, OpenProblems: all}
	d.HandedOver = d.Error == "" && c.isHandedOver(e)
	d.Repaired = d.Error == "" && !d.HandedOver
	if d.Error != "" || former.problems[e.Ref] != "" || former.lastReported != this {
		c.reportDrift(d)
	}
	for ref := range former.problems {
		if ref != e.Ref && problems[ref] == "" {
			c.reportDrift(Drift{Cluster: e.Cluster, Object: ref, Description: "was changed", Repaired: true, At: d.At, OpenProblems: all})
		}
	}
	return true, err == nil
}

// skippedRepairText is why an object is not repaired.
const skippedRepairText = "its declaration changed since the last apply, and could not be applied yet"

// recordSkipped records objects that a repair skipped because their declaration has changed.
func (c *Converger) recordSkipped(refs ...apply.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.currentRun.skippedByRepair == nil {
		c.currentRun.skippedByRepair = map[apply.Ref]bool{}
	}
	for _, ref := range refs {
		c.currentRun.skippedByRepair[ref] = true
	}
}

// takeSkipped returns and clears the objects that the last repair skipped.
func (c *Converger) takeSkipped() map[apply.Ref]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.currentRun.skippedByRepair
	c.currentRun.skippedByRepair = nil
	return out
}

// recreationHold returns why the recreation of an object is held, and the id to approve it; the
// result is empty if it is not. It ignores entries that precede the repair.
func (c *Converger) recreationHold(before int, cluster string, ref apply.Ref) (reason change.Reason, approval string) {
	c.mu.Lock()
	since := slices.Clone(c.currentRun.report.Held[min(before, len(c.currentRun.report.Held)):])
	c.mu.Unlock()
	for _, h := range since {
		for _, o := range h.Objects {
			if h.Cluster != cluster || o.Ref != ref {
				continue
			}
			if approval = o.ApprovalID; c.options.Permits.DisplayedID != nil {
				approval = c.options.Permits.DisplayedID(approval)
			}
			return o.Reason, approval
		}
	}
	return change.Reason{}, ""
}

func holdText(reason change.Reason, approval string) string {
	text := "held: " + reason.String()
	if approval != "" {
		text += "; approve " + approval + " to permit it"
	}
	return text
}

// resetDrift resets the drift at the start of a run: a repair that still fails fails the run.
func (c *Converger) resetDrift() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drift.bySet = nil
}

func (c *Converger) reportDrift(d Drift) {
	if c.options.Listeners.OnDrift != nil {
		c.options.Listeners.OnDrift(d)
	}
}

// openProblemsLocked returns the problems of all sets; the caller holds c.mu.
func (c *Converger) openProblemsLocked() []string {
	var out []string
	for _, s := range c.drift.bySet {
		out = slices.AppendSeq(out, maps.Values(s.problems))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// problemsByObject maps an error to the objects of a set. Errors without an object belong to the
// drifted one.
func problemsByObject(drifted apply.Ref, err error) map[apply.Ref]string {
	out := map[apply.Ref]string{}
	add := func(at apply.Ref, text string) {
		if at == (apply.Ref{}) {
			at = drifted
		}
		if out[at] != "" {
			text = out[at] + "; " + text
		}
		out[at] = text
	}
	var one *apply.ObjectError
	var visit func(error)
	visit = func(err error) {
		if joined, many := err.(interface{ Unwrap() []error }); many {
			for _, e := range joined.Unwrap() {
				visit(e)
			}
			return
		}
		if e, is := err.(*apply.ObjectError); is {
			add(e.Object, e.Error())
		} else if inner := errors.Unwrap(err); inner != nil && errors.As(err, &one) {
			visit(inner) // errors of objects are added one by one
		} else if err != nil {
			add(drifted, strings.Join(apply.Problems(err), "; "))
		}
	}
	visit(err)
	return out
}

// setRepairing marks the writes from now on as a repair, which is reported.
func (c *Converger) setRepairing(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drift.repairing = is
}

// reportReverted reports edits that an apply has found and reverted while no one watched.
func (c *Converger) reportReverted(cluster string, r apply.ObjectResult) {
	c.mu.Lock()
	repairing := c.drift.repairing
	c.mu.Unlock()
	if len(r.TakenBack) > 0 && !repairing {
		c.reportDrift(Drift{Cluster: cluster, Object: r.Ref, Description: "was changed: " + strings.Join(r.TakenBack, ", "), Repaired: true, At: c.options.Clock.Now()})
	}
}

// repairDeclared applies a set of declarations, or the bootstrap, again.
func (c *Converger) repairDeclared(ctx context.Context, e apply.DriftEvent) (found bool, err error) {
	if !c.hasLease(Runtime, operatorLease) {
		return false, nil
	}
	if e.Set == bootstrapSet {
		return true, c.applyBootstrap(ctx)
	}
	for _, name := range []string{Runtime, Virtual} {
		if e.Set == c.nameOfSet(name) && e.Cluster == name {
			return true, c.applyDeclarations(ctx, name, splitByCluster(c.landscape)[name])
		}
	}
	return false, nil
}

// DescribeDrift describes a drift event: deleted, or the changed fields and their managers.
func DescribeDrift(e apply.DriftEvent) string {
	if e.Deleted {
		return "was deleted"
	}
	text := ""
	for _, f := range e.Fields {
		if text != "" {
			text += ", "
		}
		text += f.Path
		if f.Manager != "" {
			text += " (by " + f.Manager + ")"
		}
	}
	if text == "" {
		return "was changed"
	}
	return fmt.Sprintf("was changed: %s", text)
}
