package permit

import "github.com/pergola-dev/pergola/change"

// Review has the deletions and recreations that a reviewer could see: those of the rendered difference of two revisions. Others are held, for example because
// a cluster is not as Git said it was.
type Review struct {
	// of names the revisions that were compared.
	of   string
	seen map[string]bool
}

// ReviewOf collects what a plan deletes or recreates, held or not. of names the revisions of the plan: what happened by their review does not happen by it
// again, whoever applies it.
func ReviewOf(of string, p change.Plan) *Review {
	r := &Review{of: of, seen: map[string]bool{}}
	for _, item := range p.Items {
		if Loses(item) {
			r.seen[ApprovalID(item.Cluster, item.Object)] = true
		}
	}
	return r
}

// Loses reports whether an object goes by what a plan says, for good or for a moment, held or not.
func Loses(item change.Item) bool {
	return item.Action == change.Delete || item.Action == change.Recreate || item.Action == change.Hold
}

// has reports whether the difference showed a deletion or recreation.
func (r *Review) has(cluster string, ref change.Ref) bool {
	return r.seen[ApprovalID(cluster, ref)]
}
