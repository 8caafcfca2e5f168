// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
)

// careDelayAfterRepair is the delay of the health check after a repair: the repaired object rolls
// out first.
const careDelayAfterRepair = 1500 * time.Millisecond

// eventBufferSize is the number of events that a Keeper buffers before watchers block.
const eventBufferSize = 256

// AddedCluster is a cluster of Engine that is found later, and watched until Context ends.
type AddedCluster struct {
	Context context.Context
	Cluster *apply.Cluster
}

// DriftRepairer repairs drift and triggers health checks. All fields are required unless noted.
type DriftRepairer struct {
	// Engine knows the objects applied to the Clusters.
	Engine   *apply.Engine
	Clusters []*apply.Cluster
	// AddedClusters receives clusters that are found later; it is nil for none.
	AddedClusters <-chan AddedCluster
	Clock         clock.WithTicker
	// CareInterval is the time between health checks without a known change.
	CareInterval time.Duration
	// Repair applies the set of an event again. It returns false to retry with the next care.
	Repair func(context.Context, apply.DriftEvent) bool
	// Care judges the health of all owners.
	Care func(context.Context)
	// SetsOf returns the sets that write a ManagedResource.
	SetsOf func(cluster string, managedResource apply.Ref) []string
}

// Run works until ctx ends. One goroutine calls Repair and Care, one at a time.
func (k DriftRepairer) Run(ctx context.Context) {
	events := make(chan apply.DriftEvent, eventBufferSize)
	tell := func(e apply.DriftEvent) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	var watchers sync.WaitGroup
	watch := func(ctx context.Context, c *apply.Cluster) {
		watchers.Go(func() { k.Engine.WatchDrift(ctx, c, tell) })
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
			case j := <-k.AddedClusters:
				until, cancel := context.WithCancel(ctx)
				context.AfterFunc(j.Context, cancel)
				watch(until, j.Cluster)
			}
		}
	})
	defer watchers.Wait()
	k.handleEvents(ctx, events)
}

func (k DriftRepairer) handleEvents(ctx context.Context, events <-chan apply.DriftEvent) {
	care := k.Clock.NewTicker(k.CareInterval)
	defer care.Stop()
	// failed has the sets that could not be repaired, each with its last event.
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
			soon = k.Clock.After(careDelayAfterRepair)
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

// watchDeletions reports ManagedResources that someone deletes. Our finalizer blocks the deletion,
// so the engine sees no drift.
func (k DriftRepairer) watchDeletions(ctx context.Context, c *apply.Cluster, tell func(apply.DriftEvent)) {
	found := make(chan apply.Ref, eventBufferSize)
	stop := c.OnChange(func(e apply.ChangeEvent) {
		if e.New == nil || e.Ref.Kind != "ManagedResource" || e.New.GetDeletionTimestamp() == nil || e.Old != nil && e.Old.GetDeletionTimestamp() != nil {
			return
		}
		select {
		case found <- e.Ref:
		default: // drop events beyond the buffer; the next run repairs their objects
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
