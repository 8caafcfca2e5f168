// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"slices"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// HeldObjects are deletions that the gate holds on one cluster.
type HeldObjects struct {
	Cluster string             `json:"cluster"`
	Objects []apply.HeldObject `json:"objects"`
	// Approval is the id that approves exactly these objects; it is empty if none does. Each object
	// also has its own id.
	Approval string `json:"approval,omitempty"`
}

func (v Verdict) HeldAmong(cluster string, refs []change.Ref) HeldObjects {
	out := HeldObjects{Cluster: cluster, Approval: v.ID}
	// The held objects stay in the order of refs.
	for _, ref := range refs {
		if reason, held := v.Held[ref]; held {
			out.Objects = append(out.Objects, apply.HeldObject{Ref: ref, Reason: reason, ApprovalID: ApprovalID(cluster, ref)})
		}
	}
	return out
}

// HeldIDs returns the ids that approve held objects, alone or together.
func HeldIDs(held []HeldObjects) map[string]bool {
	out := map[string]bool{}
	for _, h := range held {
		out[h.Approval] = true
		for _, o := range h.Objects {
			out[o.ApprovalID] = true
		}
	}
	delete(out, "")
	return out
}

// WithUnprocessed adds the objects that were held before and that an unfinished run did not
// process.
func WithUnprocessed(held, before []HeldObjects) []HeldObjects {
	known := map[string]bool{}
	for _, h := range held {
		for _, o := range h.Objects {
			known[h.Cluster+" "+o.Ref.String()] = true
		}
	}
	out := slices.Clone(held)
	for _, h := range before {
		h.Objects = slices.DeleteFunc(slices.Clone(h.Objects), func(o apply.HeldObject) bool { return known[h.Cluster+" "+o.Ref.String()] })
		if len(h.Objects) > 0 {
			out = append(out, h)
		}
	}
	return out
}
