package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

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
	content, err := seedpublication.Of(l, j.approved...)
	if err != nil {
		return fmt.Errorf("publishing for seeds: %w", err)
	}
	publisher := &seedpublication.Publisher{Engine: j.engine, Clock: s.Clock}
	var group errgroup.Group
	group.SetLimit(publishedAtATime)
	var mu sync.Mutex
	var problems []error
	for _, seed := range seeds {
		name := seed.Object.Name
		if slices.ContainsFunc(j.converger.Refused(), func(r string) bool { return r == "Seed "+name }) {
			problems = append(problems, &owner.FollowsError{Err: fmt.Errorf("seed %s: nothing is published for it, because what Git declares for it could not be applied", name)})
			continue
		}
		group.Go(func() error {
			if _, err := publisher.Apply(ctx, virtual, content, name, j.revision.Revision()); err != nil {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, err)
			}
			return nil
		})
	}
	_ = group.Wait() // problems has them all
	return errors.Join(problems...)
}
