package landscape

import (
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Reviewed are the deletions and recreations that a reviewer could see: those of the rendered difference of two revisions. What goes
// beyond them is held, for example because a cluster is not as Git said it was.
type Reviewed struct {
	// of names the revisions that were compared.
	of   string
	seen map[string]bool
}

// ReviewedOf collects what a plan deletes or recreates, held or not. The plan is the difference of revisions that are named: what has happened by
// their review does not happen by it again, whichever converger is at it.
func ReviewedOf(of string, p change.Plan) *Reviewed {
	r := &Reviewed{of: of, seen: map[string]bool{}}
	for _, item := range p.Items {
		if Loses(item) {
			r.seen[permit.ApprovalID(item.Cluster, item.Object)] = true
		}
	}
	return r
}

// Loses tells whether an object goes by what a plan says, for good or for a moment, held or not.
func Loses(item change.Item) bool {
	return item.Action == change.Delete || item.Action == change.Recreate || item.Action == change.Hold
}

// has tells whether a deletion or recreation was to be seen.
func (r *Reviewed) has(cluster string, ref change.Ref) bool {
	return r.seen[permit.ApprovalID(cluster, ref)]
}
