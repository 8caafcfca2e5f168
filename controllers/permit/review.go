package permit

import (
	"maps"

	"github.com/pergola-dev/pergola/change"
)

// Review has the deletions and recreations that a reviewer could see in rendered differences of
// revisions. Others are held, for example because a cluster differs from Git.
type Review struct {
	// ID names the compared revisions: a review permits a deletion only once, even across
	// processes.
	ID string
	// here has the approval ids of objects on the operator's clusters.
	here map[string]bool
	// seeds has the lost and created objects of each seed. everywhere has the deletions that are
	// reviewed for Shoots of all seeds, because a sampled Shoot shows them.
	seeds      map[string]SeedChange
	everywhere SeedChange
}

// ReviewOf collects the deletions and recreations of a plan on the operator's clusters, held or
// not.
func ReviewOf(id string, p change.Plan) *Review {
	r := &Review{ID: id, here: map[string]bool{}, seeds: map[string]SeedChange{}}
	r.Show(p.Items...)
	return r
}

// Show adds items about the operator's clusters.
func (r *Review) Show(items ...change.Item) {
	for _, item := range items {
		if loses(item) {
			r.here[ApprovalID(item.Cluster, item.Object)] = true
		}
	}
}

// Home is the seed that a Seed or Shoot is converged on, and the namespace of a Shoot there.
type Home struct{ Seed, ControlPlane string }

// ShowOnSeed adds an item about a seed or one of its Shoots. A deletion of a sampled Shoot is
// reviewed for every Shoot on every seed.
func (r *Review) ShowOnSeed(item change.Item, at Home, sampled bool) {
	object, seed := ObjectIn(at.ControlPlane, item.Object), r.seeds[at.Seed]
	switch {
	case loses(item):
		seed.Lose(object, item.Owner)
		if sampled {
			r.everywhere.Lose(object, AllOf(item.Owner))
		}
	case item.Action == change.Create:
		seed.Make(object, item.Owner)
	default:
		return
	}
	r.seeds[at.Seed] = seed
}

// OnSeed returns the change that the differences show for a seed.
func (r *Review) OnSeed(seed string) SeedChange {
	out := r.seeds[seed]
	out.ID, out.Lost = r.ID, maps.Clone(out.Lost)
	for object, owners := range r.everywhere.Lost {
		if out.Lost[object] != nil {
			out.Lost[object] = maps.Clone(out.Lost[object])
		}
		for name := range owners {
			out.Lose(object, name)
		}
	}
	return out
}

// loses reports whether a plan deletes or recreates an object, held or not.
func loses(item change.Item) bool {
	return item.Action == change.Delete || item.Action == change.Recreate || item.Action == change.Hold
}

// has reports whether the difference showed a deletion or recreation.
func (r *Review) has(cluster string, ref change.Ref) bool {
	return r.here[ApprovalID(cluster, ref)]
}
