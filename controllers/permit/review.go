package permit

import (
	"maps"

	"github.com/pergola-dev/pergola/change"
)

// Review has the deletions and recreations that a reviewer could see in rendered differences of
// revisions. Others are held, for example because a cluster is not as Git said it was.
type Review struct {
	// ID names the revisions that were compared: what happened by their review does not happen by
	// it again, whoever applies it.
	ID string
	// here are the approval ids of objects on the clusters of the operator.
	here map[string]bool
	// seeds has what seeds lose and get, by their names. everywhere is what Shoots of all seeds may
	// lose, as those of a sample do.
	seeds      map[string]SeedChange
	everywhere SeedChange
}

// ReviewOf collects what a plan deletes or recreates on the clusters of the operator, held or not.
func ReviewOf(id string, p change.Plan) *Review {
	r := &Review{ID: id, here: map[string]bool{}, seeds: map[string]SeedChange{}}
	r.Show(p.Items...)
	return r
}

// Show adds what a difference says of the clusters of the operator.
func (r *Review) Show(items ...change.Item) {
	for _, item := range items {
		if loses(item) {
			r.here[ApprovalID(item.Cluster, item.Object)] = true
		}
	}
}

// Home is the seed that a Seed or Shoot is converged on, and the namespace there that a Shoot has.
type Home struct{ Seed, ControlPlane string }

// ShowOnSeed adds what a difference says of a seed, whose gardenlet also has what is in its Shoots.
// A deletion that one Shoot of a sample shows, every Shoot may have, on every seed.
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

// OnSeed is what the differences show of a seed.
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

// loses reports whether an object goes by what a plan says, for good or for a moment, held or not.
func loses(item change.Item) bool {
	return item.Action == change.Delete || item.Action == change.Recreate || item.Action == change.Hold
}

// has reports whether the difference showed a deletion or recreation.
func (r *Review) has(cluster string, ref change.Ref) bool {
	return r.here[ApprovalID(cluster, ref)]
}
