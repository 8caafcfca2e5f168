// SPDX-License-Identifier: Apache-2.0

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
	// operatorObjects has the approval ids of objects on the operator's clusters.
	operatorObjects map[string]bool
	// seedChanges has the lost and created objects of each seed. sampledChange has the deletions
	// that are reviewed for Shoots of all seeds, because a sampled Shoot shows them.
	seedChanges   map[string]SeedChange
	sampledChange SeedChange
}

// NewReview collects the deletions and recreations of a plan on the operator's clusters, held or
// not.
func NewReview(id string, p change.Plan) *Review {
	r := &Review{ID: id, operatorObjects: map[string]bool{}, seedChanges: map[string]SeedChange{}}
	r.AddItems(p.Items...)
	return r
}

// AddItems adds items about the operator's clusters.
func (r *Review) AddItems(items ...change.Item) {
	for _, item := range items {
		if isDeletion(item) {
			r.operatorObjects[ApprovalID(item.Cluster, item.Object)] = true
		}
	}
}

// SeedLocation is the seed that a Seed or Shoot is converged on, and the namespace of a Shoot
// there.
type SeedLocation struct{ Seed, ControlPlane string }

// AddSeedItem adds an item about a seed or one of its Shoots. A deletion of a sampled Shoot is
// reviewed for every Shoot on every seed.
func (r *Review) AddSeedItem(item change.Item, at SeedLocation, sampled bool) {
	object, seed := NormalizedObject(at.ControlPlane, item.Object), r.seedChanges[at.Seed]
	switch {
	case isDeletion(item):
		seed.AddLost(object, item.Owner)
		if sampled {
			r.sampledChange.AddLost(object, AllOwnersLike(item.Owner))
		}
	case item.Action == change.Create:
		seed.AddCreated(object, item.Owner)
	default:
		return
	}
	r.seedChanges[at.Seed] = seed
}

// ForSeed returns the change that the differences show for a seed.
func (r *Review) ForSeed(seed string) SeedChange {
	out := r.seedChanges[seed]
	out.ID, out.LostObjects = r.ID, maps.Clone(out.LostObjects)
	for object, owners := range r.sampledChange.LostObjects {
		if out.LostObjects[object] != nil {
			out.LostObjects[object] = maps.Clone(out.LostObjects[object])
		}
		for name := range owners {
			out.AddLost(object, name)
		}
	}
	return out
}

// isDeletion reports whether a plan deletes or recreates an object, held or not.
func isDeletion(item change.Item) bool {
	return item.Action == change.Delete || item.Action == change.Recreate || item.Action == change.Hold
}

// hasReviewed reports whether the difference showed a deletion or recreation.
func (r *Review) hasReviewed(cluster string, ref change.Ref) bool {
	return r.operatorObjects[ApprovalID(cluster, ref)]
}
