package permit

import (
	"slices"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// HeldObjects are deletions that the gate holds on one cluster.
type HeldObjects struct {
	Cluster string       `json:"cluster"`
	Objects []apply.Held `json:"objects"`
	// Approval is the id that lets exactly these pass together; empty when nothing does. Each of
	// them has one of its own besides.
	Approval string `json:"approval,omitempty"`
}

// Of gives the held objects of a verdict among refs, in their order.
func (v Verdict) Of(cluster string, refs []change.Ref) HeldObjects {
	out := HeldObjects{Cluster: cluster, Approval: v.ID}
	for _, ref := range refs {
		if reason, held := v.Held[ref]; held {
			out.Objects = append(out.Objects, apply.Held{Ref: ref, Reason: reason, Approval: ApprovalID(cluster, ref)})
		}
	}
	return out
}

// HeldIDs are the ids by which held objects pass, each one alone or all together.
func HeldIDs(held []HeldObjects) map[string]bool {
	out := map[string]bool{}
	for _, h := range held {
		out[h.Approval] = true
		for _, o := range h.Objects {
			out[o.Approval] = true
		}
	}
	delete(out, "")
	return out
}

// Unseen is for a run that did not finish: it adds the objects that were held before, and that the
// run did not reach.
func Unseen(held, before []HeldObjects) []HeldObjects {
	known := map[string]bool{}
	for _, h := range held {
		for _, o := range h.Objects {
			known[h.Cluster+" "+o.Ref.String()] = true
		}
	}
	out := slices.Clone(held)
	for _, h := range before {
		h.Objects = slices.DeleteFunc(slices.Clone(h.Objects), func(o apply.Held) bool { return known[h.Cluster+" "+o.Ref.String()] })
		if len(h.Objects) > 0 {
			out = append(out, h)
		}
	}
	return out
}
