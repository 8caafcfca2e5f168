package landscape

import "github.com/pergola-dev/pergola/plan"

// Reviewed are the deletions and recreations that a reviewer could see: those of the rendered difference of two revisions. What goes
// beyond them is held, for example because a cluster is not as Git said it was.
type Reviewed struct {
	seen map[string]bool
}

// ReviewedOf collects what a plan deletes or recreates, held or not.
func ReviewedOf(p plan.Plan) *Reviewed {
	r := &Reviewed{seen: map[string]bool{}}
	for _, item := range p.Items {
		if Loses(item) {
			r.seen[plan.ApprovalOf(item.Cluster, item.Object)] = true
		}
	}
	return r
}

// Loses tells whether an object goes by what a plan says, for good or for a moment, held or not.
func Loses(item plan.Item) bool {
	return item.Action == plan.Delete || item.Action == plan.Recreate || item.Action == plan.Hold
}

// has tells whether a deletion or recreation was to be seen.
func (r *Reviewed) has(cluster string, ref plan.Ref) bool {
	return r.seen[plan.ApprovalOf(cluster, ref)]
}
