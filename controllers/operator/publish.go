package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// publishedAtATime is how many seeds are published for side by side.
const publishedAtATime = 8

// publish writes what the seeds need of a revision into the virtual garden, where their gardenlets read it. A seed that is not in the
// virtual garden yet has no place for it.
func (s *syncer) publish(ctx context.Context, j *job) error {
	l := j.revision.landscape
	seeds, err := l.Seeds()
	if err != nil {
		return fmt.Errorf("publishing for seeds: %w", err)
	}
	virtual := j.converger.Cluster(landscape.Virtual)
	if len(seeds) == 0 || virtual == nil || ctx.Err() != nil {
		return nil
	}
	decided := seedpublication.Decided{Approved: j.approved}
	if j.seen != nil {
		decided.Review = landscapev1alpha1.ReviewRequired
	}
	content, err := seedpublication.Of(l, decided)
	if err != nil {
		return fmt.Errorf("publishing for seeds: %w", err)
	}
	publisher := &seedpublication.Publisher{Engine: j.engine, Clock: s.Clock}
	var names []string
	var problems []error
	for _, seed := range seeds {
		name := seed.Object.Name
		if slices.ContainsFunc(j.converger.Refused(), func(r string) bool { return r == "Seed "+name }) {
			problems = append(problems, &owner.FollowsError{Err: fmt.Errorf("seed %s: nothing is published for it, because what Git declares for it could not be applied", name)})
			continue
		}
		names = append(names, name)
	}
	return errors.Join(append(problems, forEach(names, func(name string) error {
		_, err := publisher.Apply(ctx, virtual, content, name, j.revision.Revision())
		return err
	}))...)
}

// publishReview tells the seeds what could be seen in the review of a revision of what they lose by it. It comes before the revision itself.
func (s *syncer) publishReview(ctx context.Context, j *job) error {
	virtual := j.converger.Cluster(landscape.Virtual)
	if j.seen == nil || virtual == nil {
		return nil
	}
	seeds, err := j.revision.landscape.Seeds()
	if err != nil {
		return fmt.Errorf("publishing what was reviewed: %w", err)
	}
	var names []string
	for _, seed := range seeds {
		names = append(names, seed.Object.Name)
	}
	publisher := &seedpublication.Publisher{Engine: j.engine, Clock: s.Clock}
	return forEach(names, func(name string) error {
		change := j.seen.seeds[name]
		change.Base = j.seen.base // also where nothing is lost: what another commit on the same base showed is not to be expected any more
		change.Lost = maps.Clone(change.Lost)
		for object, owners := range j.seen.everywhere {
			for name := range owners {
				seedpublication.Note(&change.Lost, object, name)
			}
		}
		return publisher.ApplyReview(ctx, virtual, change, name)
	})
}

// forEach works for several seeds side by side, and gives all that went wrong.
func forEach(names []string, work func(name string) error) error {
	var group errgroup.Group
	group.SetLimit(publishedAtATime)
	problems := make([]error, len(names))
	for i, name := range names {
		group.Go(func() error {
			problems[i] = work(name)
			return nil
		})
	}
	_ = group.Wait() // problems has them all
	return errors.Join(problems...)
}
