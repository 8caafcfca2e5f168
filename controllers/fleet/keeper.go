package fleet

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
)

// judgeRepaired is how soon after a repair health is judged again: what was repaired rolls out
// first.
const judgeRepaired = 1500 * time.Millisecond

// waiting is how many events a Keeper has waiting before whoever finds more has to wait.
const waiting = 256

// Joining is a cluster of Engine that is found later, and watched until Context ends.
type Joining struct {
	Context context.Context
	Cluster *apply.Cluster
}

// Keeper repairs drift and has health judged. All fields are needed unless they say otherwise.
type Keeper struct {
	// Engine knows what was applied to the Clusters.
	Engine   *apply.Engine
	Clusters []*apply.Cluster
	// Joining are clusters that are found while it works; nil for none.
	Joining <-chan Joining
	Clock   clock.WithTicker
	// CareInterval is how often health is judged although nothing is known to have changed.
	CareInterval time.Duration
	// Repair applies the set of an event again. It says false when that has to be tried once more:
	// with the next round of care.
	Repair func(context.Context, apply.DriftEvent) bool
	// Care judges the health of all.
	Care func(context.Context)
	// SetsOf gives the sets that write a ManagedResource.
	SetsOf func(cluster string, managedResource apply.Ref) []string
}

// Keep works until ctx ends. Repair and Care are called by one goroutine, one at a time.
func (k Keeper) Keep(ctx context.Context) {
	events := make(chan apply.DriftEvent, waiting)
	tell := func(e apply.DriftEvent) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	var watchers sync.WaitGroup
	watch := func(ctx context.Context, c *apply.Cluster) {
		watchers.Go(func() { k.Engine.Watch(ctx, c, tell) })
		watchers.Go(func() { k.watchDeletions(ctx, c, tell) })
	}
	for _, c := range k.Clusters {
		watch(ctx, c)
	}
	watchers.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case j := <-k.Joining:
				until, cancel := context.WithCancel(ctx)
				context.AfterFunc(j.Context, cancel)
				watch(until, j.Cluster)
			}
		}
	})
	defer watchers.Wait()
	k.work(ctx, events)
}

func (k Keeper) work(ctx context.Context, events <-chan apply.DriftEvent) {
	care := k.Clock.NewTicker(k.CareInterval)
	defer care.Stop()
	// failed are the sets that could not be repaired, each with what was found of it last.
	type set struct{ cluster, name string }
	failed := map[set]apply.DriftEvent{}
	repair := func(e apply.DriftEvent) {
		id := set{e.Cluster, e.Set}
		delete(failed, id)
		if !k.Repair(ctx, e) {
			failed[id] = e
		}
	}
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			repair(e)
			soon = k.Clock.After(judgeRepaired)
		case <-soon:
			soon = nil
			k.Care(ctx)
		case <-care.C():
			for _, e := range maps.Clone(failed) {
				repair(e)
			}
			k.Care(ctx)
		}
	}
}

// watchDeletions tells of ManagedResources that somebody deletes: our finalizer keeps them, so they
// never go by themselves and are no drift to the engine.
func (k Keeper) watchDeletions(ctx context.Context, c *apply.Cluster, tell func(apply.DriftEvent)) {
	found := make(chan apply.Ref, waiting)
	stop := c.OnChange(func(e apply.ChangeEvent) {
		if e.New == nil || e.Ref.Kind != "ManagedResource" || e.New.GetDeletionTimestamp() == nil || e.Old != nil && e.Old.GetDeletionTimestamp() != nil {
			return
		}
		select {
		case found <- e.Ref:
		default: // so many at once are no slip of the hand; the next convergence sees to them
		}
	})
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ref := <-found:
			for _, set := range k.SetsOf(c.Name(), ref) {
				tell(apply.DriftEvent{Cluster: c.Name(), Set: set, Ref: ref, Deleted: true, At: k.Clock.Now()})
			}
		}
	}
}
