package landscape

import (
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
)

// Report is what a run did.
type Report struct {
	Owners []*owner.Report `json:"owners"`
	// Held deletions, with the ids that approve them.
	Held []owner.HeldObjects `json:"held,omitempty"`
	// Changed is how many objects were written, of owners and declarations together; Written says what was done with them.
	Changed int         `json:"changed"`
	Written owner.Tally `json:"written"`
	// HandedOver are declared fields that are left as controllers set them.
	HandedOver []plan.HandedOver `json:"handedOver,omitempty"`
	// Operations of operations/ that were executed, in this run or before, the newest first.
	Operations []landscapev1alpha1.OperationRecord `json:"operations,omitempty"`
}

func (c *Converger) object(owner, bundle string, r apply.ObjectResult) {
	if c.options.OnObject != nil {
		c.options.OnObject(owner, bundle, r)
	}
}

func (c *Converger) count(result *apply.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Written.Add(result.Objects...)
	c.report.Changed = c.report.Written.Total()
}

func (c *Converger) hold(cluster string, held []apply.Held, id string) {
	if len(held) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Held = append(c.report.Held, owner.HeldObjects{Cluster: cluster, Objects: held, Approval: id})
}

// HeldDeletions is what was held as status.held has it.
func (r *Report) HeldDeletions() []landscapev1alpha1.HeldDeletion {
	var out []landscapev1alpha1.HeldDeletion
	for _, h := range r.Held {
		for _, o := range h.Objects {
			out = append(out, landscapev1alpha1.HeldDeletion{Cluster: h.Cluster, Object: o.Ref.String(), Reason: o.Reason, Approval: h.Approval})
		}
	}
	return out
}
