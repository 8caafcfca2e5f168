// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

const (
	// reviewSampleSize is how many Shoots are rendered if a change affects them from outside. They
	// stand for all.
	reviewSampleSize = 32
	// reviewBatchSize is how many owners are rendered at a time, which bounds memory.
	reviewBatchSize = 8
)

// reviewBases returns the commits that a new one is compared with: the last applied one, and those
// attempted since. Without any it is the zero value alone.
func reviewBases(status *landscapev1alpha1.LandscapeStatus, next commitPath) []commitPath {
	out := []commitPath{appliedCommitPath(status)}
	for _, tried := range otherTriedRevisions(status.Tried, next) {
		if at := triedCommitPath(tried); !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// reviewID names a comparison. It stays the same while a commit is retried.
func reviewID(bases []commitPath, next commitPath) string {
	names := make([]string, len(bases))
	for i, base := range bases {
		names[i] = base.commit
		if base.commit != "" && base.folder != next.folder {
			names[i] += ":" + base.folder
		}
	}
	return strings.Join(names, ",") + ".." + next.commit + ":" + next.folder
}

// reviewChanges returns the deletions and recreations that a reviewer could see. It compares the
// last applied revision and each later attempt with the new one. A revert of a partial attempt thus
// shows what it deletes. An unreadable base shows nothing, which a note says.
func (r *revisionReader) reviewChanges(ctx context.Context, next *revision) (*permit.Review, error) {
	bases := reviewBases(&r.object.Status, next.commitPath())
	out := permit.NewReview(reviewID(bases, next.commitPath()), change.Plan{})
	for _, base := range bases {
		former, err := r.readBase(ctx, next, base)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			next.notes = append(next.notes, fmt.Sprintf("revision %s cannot be compared with it, so deletions that no other comparison shows are held: %s", base.commit, err))
			continue
		}
		if err := r.compareWithBase(ctx, former, next, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readBase reads a commit that is compared with the new one, or nil for none. It does not validate
// it.
func (r *revisionReader) readBase(ctx context.Context, next *revision, at commitPath) (*landscapes.Landscape, error) {
	switch {
	case at.commit == "":
		return nil, nil
	case r.activeRevision != nil && r.activeRevision.commitPath() == at:
		return r.activeRevision.landscape, nil
	case at == next.commitPath():
		return next.landscape, nil
	case r.loadedBases[at] != nil:
		return r.loadedBases[at], nil
	}
	snapshot, err := r.remote.At(ctx, at.commit)
	if err != nil {
		return nil, err
	}
	l, _, err := r.loadLandscape(ctx, snapshot, at.folder)
	if err == nil {
		r.loadedBases[at] = l
	}
	return l, err
}

// compareWithBase renders the affected owners in parts: the Garden for the operator's clusters,
// Seeds and Shoots for the seeds.
func (r *revisionReader) compareWithBase(ctx context.Context, former *landscapes.Landscape, next *revision, out *permit.Review) error {
	reach, err := render.FindAffected(r.catalogue, render.State{Landscape: former, Name: "the previous revision", IsPartial: true},
		render.State{Landscape: next.landscape}, render.WithTime(r.now), render.WithSampling(reviewSampleSize))
	if err != nil {
		return newInvalidError("revision %s: %s", next.Revision(), err)
	}
	out.AddItems(plan.CompareBundles(differingDeclarations(former, next.landscape)).Items...)
	oldCluster, newCluster := reach.Old.ClusterNamer(), reach.New.ClusterNamer()
	before, homes, sampled := map[string]bool{}, map[string]permit.SeedLocation{}, map[string]bool{}
	for _, in := range reach.Old.Inputs {
		before[in.Owner.String()] = true
	}
	for _, in := range reach.New.Inputs {
		at := permit.SeedLocation{Seed: newCluster(render.Bundle{Cluster: render.ClusterSeed, Owner: in.Owner})}
		if in.Owner.Kind == owner.Shoot {
			at.ControlPlane = in.Owner.ControlPlaneNamespace
		}
		homes[in.Owner.String()] = at
	}
	if len(reach.Unsampled) > 0 {
		for _, o := range reach.Sampled {
			sampled[o.String()] = true
		}
	}
	for part := range reach.Split(reviewBatchSize) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		old, new, _, err := part.Render() // earlier errors do not matter
		if err != nil {
			return newInvalidError("revision %s: %s", next.Revision(), err)
		}
		for _, item := range plan.CompareBundles(plan.AssignClusters(old, oldCluster), plan.AssignClusters(new, newCluster)).Items {
			if kind, _, _ := strings.Cut(item.Owner, " "); kind == owner.Garden {
				out.AddItems(item)
				continue
			}
			// An owner whose file is missing is held with all its objects, and loses nothing.
			if at, stays := homes[item.Owner]; stays && before[item.Owner] {
				out.AddSeedItem(item, at, sampled[item.Owner])
			}
		}
	}
	return nil
}

// differingDeclarations returns the declared objects that differ between two landscapes, for the
// operator's clusters.
func differingDeclarations(former, next *landscapes.Landscape) (before, after []plan.ClusterBundle) {
	if former == nil {
		return nil, landscape.DeclarationBundles(next, landscape.UndecryptableSecrets(next))
	}
	sealed := landscape.UndecryptableSecrets(former)
	maps.Copy(sealed, landscape.UndecryptableSecrets(next))
	before, after, _ = landscape.ChangedDeclarations(former, next, sealed)
	return before, after
}
