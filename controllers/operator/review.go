package operator

import (
	"context"
	"fmt"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/source"
)

// reviewed are the deletions and recreations that whoever reviewed the change could see: those of the rendered difference between
// the revision that was applied last and the new one. Without a former revision there are none.
func (r reading) reviewed(ctx context.Context, object *landscapev1alpha1.Landscape, remote source.Remote, active, next *revision) (*landscape.Reviewed, error) {
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
	before, err := r.places(former)
	if err != nil {
		return nil, fmt.Errorf("comparing with the revision that was applied last: %w", err)
	}
	after, err := r.places(next.landscape)
	if err != nil {
		return nil, invalid("revision %s: %s", next.Revision(), err)
	}
	return landscape.ReviewedOf(plan.Bundles(before, after)), nil
}

// places are what a landscape declares, and what its Garden becomes.
func (r reading) places(l *landscapes.Landscape) ([]plan.Place, error) {
	if l == nil {
		return nil, nil
	}
	out := landscape.Declared(l, landscape.Locked(l))
	bundles, err := render.All(l, r.catalogue, func(o render.Owner) bool { return o.Kind == owner.Garden }, render.At(r.now))
	if err != nil {
		return nil, err
	}
	clusterOf := render.ClusterOf(nil)
	for _, b := range bundles {
		out = append(out, plan.Place{Cluster: clusterOf(b), Bundle: b})
	}
	return out, nil
}
