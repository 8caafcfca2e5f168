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
	"github.com/pergola-dev/pergola/controllers/owner"
)

// Drift is one repair.
type Drift struct {
	Cluster string    `json:"cluster"`
	Object  apply.Ref `json:"object"`
	// What was found: deleted, or the fields that differed and who changed them.
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
	// HandedOver says that nothing is repaired: what was changed is the task of whoever changed it.
	HandedOver bool   `json:"handedOver,omitempty"`
	Error      string `json:"error,omitempty"`
	// Held is why the recreation is held that would repair it, for people; Why has it as fields,
	// and Approval is the id by which it passes. Empty if it is not.
	Held     string        `json:"held,omitempty"`
	Why      change.Reason `json:"why,omitzero"`
	Approval string        `json:"approval,omitempty"`
	At       time.Time     `json:"at"`
	// Standing is why objects are not as Git says, this one included: one text for each that could
	// not be repaired yet.
	Standing []string `json:"standing,omitempty"`
}

// driftSet is a set of objects on a cluster.
type driftSet struct{ cluster, name string }

// standing is what could not be repaired of a set.
type standing struct {
	// problems by object.
	problems map[apply.Ref]string
	// told is the last event of which it was told that it is repaired: it comes again as long as
	// something else of its set has problems.
	told string
}

// repair applies the set that an object belongs to again: unchanged objects cost nothing. It says
// false when that failed, be it for another object of the set.
func (c *Converger) repair(ctx context.Context, e apply.DriftEvent) bool {
	found, ok := c.answer(ctx, e, func() (bool, error) { return c.repairDeclared(ctx, e) })
	if !found {
		return c.members.fleet.Repair(ctx, e)
	}
	return ok
}

// answer has a set repaired and tells of it. The repair says whether it found the set and did
// something.
func (c *Converger) answer(ctx context.Context, e apply.DriftEvent, repair func() (bool, error)) (found, ok bool) {
	c.mu.Lock()
	before := len(c.now.report.Held)
	c.mu.Unlock()
	c.enterRepair(true)
	found, err := repair()
	c.enterRepair(false)
	if !found || ctx.Err() != nil {
		return found, err == nil
	}
	problems := problemsByObject(e.Ref, err)
	held, approval := c.heldSince(before, e.Cluster, e.Ref)
	c.mu.Lock()
	stood := maps.Clone(c.drift.drifts[driftSet{e.Cluster, e.Set}].problems)
	c.mu.Unlock()
	for ref := range stood { // what is held of the others, and was told, is so still
		if why, id := c.heldSince(before, e.Cluster, ref); !why.IsZero() && problems[ref] == "" {
			problems[ref] = heldText(why, id)
		}
	}
	for ref := range c.takeNotApplied() {
		if problems[ref] == "" && (ref == e.Ref || stood[ref] != "") {
			problems[ref] = notApplied
		}
	}
	if !held.IsZero() && problems[e.Ref] == "" {
		problems[e.Ref] = heldText(held, approval)
	}
	set := driftSet{e.Cluster, e.Set}
	c.mu.Lock()
	if c.drift.drifts == nil {
		c.drift.drifts = map[driftSet]standing{}
	}
	former := c.drift.drifts[set]
	this := fmt.Sprint(e.Ref, e.At.UnixNano())
	next := standing{problems: problems, told: former.told}
	if problems[e.Ref] == "" {
		next.told = this
	}
	c.drift.drifts[set] = next
	all := c.standingLocked()
	c.mu.Unlock()

	d := Drift{Cluster: e.Cluster, Object: e.Ref, What: DescribeDrift(e), At: c.options.Clock.Now(), Error: problems[e.Ref], Held: held.String(), Why: held, Approval: approval, Standing: all}
	d.HandedOver = d.Error == "" && c.isHandedOver(e)
	d.Repaired = d.Error == "" && !d.HandedOver
	if d.Error != "" || former.problems[e.Ref] != "" || former.told != this {
		c.tellDrift(d)
	}
	for ref := range former.problems {
		if ref != e.Ref && problems[ref] == "" {
			c.tellDrift(Drift{Cluster: e.Cluster, Object: ref, What: "was changed", Repaired: true, At: d.At, Standing: all})
		}
	}
	return true, err == nil
}

// notApplied is why an object stays as somebody left it.
const notApplied = "Git declares it otherwise than it was applied last, and that could not be applied yet"

// noteNotApplied notes objects that a repair could not bring back, since they are declared
// otherwise by now.
func (c *Converger) noteNotApplied(refs ...apply.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.unapplied == nil {
		c.now.unapplied = map[apply.Ref]bool{}
	}
	for _, ref := range refs {
		c.now.unapplied[ref] = true
	}
}

// takeNotApplied are those of the repair that has ended.
func (c *Converger) takeNotApplied() map[apply.Ref]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.now.unapplied
	c.now.unapplied = nil
	return out
}

// heldSince says why the recreation of an object is held, and by which id it is let pass; empty if
// it is not. What was held before the repair does not count.
func (c *Converger) heldSince(before int, cluster string, ref apply.Ref) (reason change.Reason, approval string) {
	c.mu.Lock()
	since := slices.Clone(c.now.report.Held[min(before, len(c.now.report.Held)):])
	c.mu.Unlock()
	for _, h := range since {
		for _, o := range h.Objects {
			if h.Cluster != cluster || o.Ref != ref {
				continue
			}
			if approval = o.Approval; c.options.Permits.Shown != nil {
				approval = c.options.Permits.Shown(approval)
			}
			return o.Reason, approval
		}
	}
	return change.Reason{}, ""
}

func heldText(reason change.Reason, approval string) string {
	text := "held: " + reason.String()
	if approval != "" {
		text += "; approving " + approval + " lets it pass"
	}
	return text
}

// forgetDrift begins a run: what still cannot be repaired fails it.
func (c *Converger) forgetDrift() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drift.drifts = nil
}

func (c *Converger) tellDrift(d Drift) {
	if c.options.Hear.OnDrift != nil {
		c.options.Hear.OnDrift(d)
	}
}

// standingLocked are the problems of all sets; c.mu is held.
func (c *Converger) standingLocked() []string {
	var out []string
	for _, s := range c.drift.drifts {
		out = slices.AppendSeq(out, maps.Values(s.problems))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// problemsByObject says what went wrong with which object of a set. What is not about one is about
// the object that had drifted.
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
			visit(inner) // what is about objects is said by itself
		} else if err != nil {
			add(drifted, strings.Join(owner.Problems(err), "; "))
		}
	}
	visit(err)
	return out
}

// enterRepair says that what is written from now on is the answer to an event, which is told.
func (c *Converger) enterRepair(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drift.repairing = is
}

// noteTakenBack tells of edits that an apply has found and overruled while nobody watched.
func (c *Converger) noteTakenBack(cluster string, r apply.ObjectResult) {
	c.mu.Lock()
	repairing := c.drift.repairing
	c.mu.Unlock()
	if len(r.TakenBack) > 0 && !repairing {
		c.tellDrift(Drift{Cluster: cluster, Object: r.Ref, What: "was changed: " + strings.Join(r.TakenBack, ", "), Repaired: true, At: c.options.Clock.Now()})
	}
}

// repairDeclared applies a set of declarations, or of the bootstrap, again.
func (c *Converger) repairDeclared(ctx context.Context, e apply.DriftEvent) (found bool, err error) {
	if !c.holds(Runtime, leaseOperator) {
		return false, nil
	}
	if e.Set == bootstrapSet {
		return true, c.applyBootstrap(ctx)
	}
	for _, name := range []string{Runtime, Virtual} {
		if e.Set == c.setID(name) && e.Cluster == name {
			return true, c.applyDeclarations(ctx, name, split(c.landscape)[name])
		}
	}
	return false, nil
}

// DescribeDrift says what was found: deleted, or the fields that differed and who changed them.
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
