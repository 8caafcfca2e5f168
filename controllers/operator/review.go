package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/source"
)

const (
	// sampleOfReview is how many Shoots are rendered of those that a change reaches from outside: what it does to them counts for all.
	sampleOfReview = 32
	// partsOfReview is how many owners are rendered at a time to see what a change does, which bounds memory.
	partsOfReview = 8
)

// seen are the deletions and recreations that whoever reviewed a change could see.
type seen struct {
	// here are those on the runtime cluster and the virtual garden.
	here *landscape.Reviewed
	// base is the commit that the difference begins with, seeds what seeds lose and get by it, by their names.
	base  string
	seeds map[string]seedpublication.Change
	// everywhere is what Shoots of all seeds may lose, as those of a sample do.
	everywhere map[string]map[string]bool
}

// reviewed are the deletions and recreations that whoever reviewed the change could see: those of the rendered difference between
// the revision that was applied last and the new one. Without a former revision there are none.
func (r reading) reviewed(ctx context.Context, object *landscapev1alpha1.Landscape, remote source.Remote, active, next *revision) (*seen, error) {
	var former *landscapes.Landscape
	applied := commitOf(object.Status.LastAppliedRevision)
	switch {
	case applied == "":
	case applied == next.Commit:
		former = next.landscape
	case active != nil && active.Commit == applied:
		former = active.landscape
	default:
		snapshot, err := remote.At(ctx, applied)
		if err != nil {
			return nil, fmt.Errorf("comparing with the revision that was applied last: %w", err)
		}
		// Whether it would be valid today is of no interest.
		if former, _, err = landscapes.LoadFS(ctx, snapshot.FS, folderOf(object), landscapes.Options{AgeIdentities: r.identities, Evaluator: r.evaluator, Kept: r.kept}); err != nil {
			return nil, fmt.Errorf("comparing with the revision that was applied last: %w", err)
		}
	}
	out := &seen{base: applied, seeds: map[string]seedpublication.Change{}}
	if err := r.compare(ctx, former, next, out); err != nil {
		return nil, err
	}
	return out, nil
}

// compare renders what the change reaches, a part at a time: the Garden for the clusters of the operator, Seeds and Shoots for the seeds.
func (r reading) compare(ctx context.Context, former *landscapes.Landscape, next *revision, out *seen) error {
	reach, err := render.Reached(r.catalogue, render.State{Landscape: former, Name: "the revision that was applied last", Partial: true},
		render.State{Landscape: next.landscape}, render.At(r.now), render.Sparingly(sampleOfReview))
	if err != nil {
		return invalid("revision %s: %s", next.Revision(), err)
	}
	garden := plan.Bundles(declaredPlaces(former), declaredPlaces(next.landscape)).Items
	oldCluster, newCluster := reach.Old.ClusterOf(), reach.New.ClusterOf()
	controlPlanes := map[string]string{}
	for _, in := range slices.Concat(reach.Old.Inputs, reach.New.Inputs) {
		if in.Owner.Kind == owner.Shoot {
			controlPlanes[in.Owner.String()] = in.Owner.ControlPlaneNamespace
		}
	}
	sampled := map[string]bool{}
	if len(reach.Left) > 0 {
		for _, o := range reach.Sampled {
			sampled[o.String()] = true
		}
	}
	for part := range reach.Parts(partsOfReview) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		before, after, _, err := part.Render() // what was wrong before is of no interest
		if err != nil {
			return invalid("revision %s: %s", next.Revision(), err)
		}
		for _, item := range plan.Bundles(placed(before, oldCluster), placed(after, newCluster)).Items {
			if kind, _, _ := strings.Cut(item.Owner, " "); kind == owner.Garden {
				garden = append(garden, item)
			} else {
				out.onSeed(item, controlPlanes[item.Owner], sampled[item.Owner])
			}
		}
	}
	out.here = landscape.ReviewedOf(plan.Plan{Items: garden})
	return nil
}

// onSeed notes what an item says of a seed. What one of a sample loses, all owners of its kind may, on all seeds.
func (s *seen) onSeed(item plan.Item, controlPlane string, sampled bool) {
	if sampled && landscape.Loses(item) {
		seedpublication.Note(&s.everywhere, seedpublication.ObjectIn(controlPlane, item.Object), seedpublication.AllOf(item.Owner))
	}
	change := s.seeds[item.Cluster]
	object := seedpublication.ObjectIn(controlPlane, item.Object)
	switch {
	case landscape.Loses(item):
		seedpublication.Note(&change.Lost, object, item.Owner)
	case item.Action == plan.Create:
		seedpublication.Note(&change.Made, object, item.Owner)
	default:
		return
	}
	s.seeds[item.Cluster] = change
}

// declaredPlaces are what a landscape declares.
func declaredPlaces(l *landscapes.Landscape) []plan.Place {
	if l == nil {
		return nil
	}
	return landscape.Declared(l, landscape.Locked(l))
}

func placed(bundles []render.Bundle, clusterOf func(render.Bundle) string) []plan.Place {
	out := make([]plan.Place, 0, len(bundles))
	for _, b := range bundles {
		out = append(out, plan.Place{Cluster: clusterOf(b), Bundle: b})
	}
	return out
}
