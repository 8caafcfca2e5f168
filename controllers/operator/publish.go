// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/internal/panics"
)

// publishParallelism is how many seeds are published for in parallel.
const publishParallelism = 8

// publishForSeeds writes the seeds' configuration of a revision into the virtual garden, where
// their gardenlets read it. A seed needs its Seed object there first.
func (s *landscapeReconciler) publishForSeeds(ctx context.Context, j *job) error {
	l := j.revision.landscape
	seeds, err := l.Seeds()
	if err != nil {
		return fmt.Errorf("publishing for seeds: %w", err)
	}
	virtual := j.converger.Cluster(landscape.Virtual)
	if len(seeds) == 0 || virtual == nil || ctx.Err() != nil {
		return nil
	}
	var decided seedpublication.ObjectSettings
	if j.permissions.review != nil {
		decided.Review = landscapev1alpha1.ReviewRequired
	}
	content, err := seedpublication.ContentOf(l, decided)
	if err != nil {
		return fmt.Errorf("publishing for seeds: %w", err)
	}
	publisher := &seedpublication.Publisher{Engine: j.engine, Clock: s.operator.role.Clock}
	var names []string
	var problems []error
	for _, seed := range seeds {
		name := seed.Object.Name
		if slices.ContainsFunc(j.converger.FailedDeclarations(), func(r string) bool { return r == "Seed "+name }) {
			problems = append(problems, &apply.FollowsError{Err: fmt.Errorf("seed %s: nothing is published, because its Seed could not be applied", name)})
			continue
		}
		names = append(names, name)
	}
	return errors.Join(append(problems, panics.RunParallel(publishParallelism, names, func(_ int, name string) error {
		content := content
		if approved := permit.ApprovalsForSeed(name, j.permissions.approved); len(approved) > 0 {
			own := decided
			own.Approved = approved
			var err error
			if content, err = seedpublication.ContentOf(l, own); err != nil {
				return fmt.Errorf("publishing for seed %s: %w", name, err)
			}
		}
		out, err := publisher.Apply(ctx, virtual, content, name, j.revision.Revision())
		j.recordPublication(name, out)
		return err
	}))...)
}

// publishReview sends each seed its reviewed deletions, before the revision itself is applied.
func (s *landscapeReconciler) publishReview(ctx context.Context, j *job) error {
	return s.forEachReviewedSeed(j, func(p *seedpublication.Publisher, virtual *apply.Cluster, seed string, change permit.SeedChange) error {
		return p.PublishReview(ctx, virtual, change, seed)
	})
}

// completeReview informs the seeds that a revision is applied completely, so that its review no
// longer allows deletions.
func (s *landscapeReconciler) completeReview(ctx context.Context, j *job) error {
	if j.isReviewComplete || j.converger.Cluster(landscape.Virtual) == nil {
		return nil
	}
	err := s.forEachReviewedSeed(j, func(p *seedpublication.Publisher, virtual *apply.Cluster, seed string, _ permit.SeedChange) error {
		return p.CompleteReview(ctx, virtual, seed)
	})
	j.isReviewComplete = err == nil
	return err
}

// forEachReviewedSeed calls work for each seed that the review of a revision shows a change for.
func (s *landscapeReconciler) forEachReviewedSeed(j *job, work func(p *seedpublication.Publisher, virtual *apply.Cluster, seed string, change permit.SeedChange) error) error {
	virtual, publisher := j.converger.Cluster(landscape.Virtual), &seedpublication.Publisher{Engine: j.engine, Clock: s.operator.role.Clock}
	if virtual == nil || j.permissions.review == nil {
		return nil
	}
	seeds, err := j.revision.landscape.Seeds()
	if err != nil {
		return fmt.Errorf("publishing the review: %w", err)
	}
	var names []string
	for _, seed := range seeds {
		names = append(names, seed.Object.Name)
	}
	return panics.RunParallel(publishParallelism, names, func(_ int, name string) error {
		change := j.permissions.review.ForSeed(name)
		if len(change.LostObjects)+len(change.CreatedObjects) == 0 {
			return nil
		}
		return work(publisher, virtual, name, change)
	})
}
