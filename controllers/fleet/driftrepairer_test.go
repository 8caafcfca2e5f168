// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
)

// testRepairer is a running Keeper whose Repair and Care only record their calls.
type testRepairer struct {
	clock  *testclock.FakeClock
	events chan apply.DriftEvent
	// actions receives the actions: cluster/set for an attempted repair, care for a health check.
	actions chan string
	// brokenSets sets, as cluster/set, cannot be repaired.
	brokenSets map[string]bool
}

func newTestRepairer(t *testing.T, broken ...string) *testRepairer {
	t.Helper()
	p := &testRepairer{clock: testclock.NewFakeClock(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)), events: make(chan apply.DriftEvent), actions: make(chan string), brokenSets: map[string]bool{}}
	for _, set := range broken {
		p.brokenSets[set] = true
	}
	tell := func(ctx context.Context, what string) {
		select {
		case p.actions <- what:
		case <-ctx.Done():
		}
	}
	k := DriftRepairer{
		Clock: p.clock, CareInterval: 30 * time.Second,
		Repair: func(ctx context.Context, e apply.DriftEvent) bool {
			set := e.Cluster + "/" + e.Set
			bad := p.brokenSets[set]
			tell(ctx, set)
			return !bad
		},
		Care: func(ctx context.Context) { tell(ctx, "care") },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.handleEvents(ctx, p.events)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	require.Eventually(t, p.clock.HasWaiters, time.Minute, time.Millisecond, "the rounds of care")
	return p
}

// nextAction returns the next action of the Keeper.
func (p *testRepairer) nextAction(t *testing.T) string {
	t.Helper()
	select {
	case what := <-p.actions:
		return what
	case <-time.After(time.Minute):
		require.Fail(t, "it does nothing")
		return ""
	}
}

// reportDrift sends a drift event, and expects the attempt to repair it.
func (p *testRepairer) reportDrift(t *testing.T, cluster, set string) {
	t.Helper()
	p.events <- apply.DriftEvent{Cluster: cluster, Set: set}
	require.Equal(t, cluster+"/"+set, p.nextAction(t))
}

func TestHealthIsJudgedSoonAfterARepair(t *testing.T) {
	p := newTestRepairer(t)
	p.reportDrift(t, "seed", "a")
	p.reportDrift(t, "seed", "b")
	// The ticker and both timers: the timer of the first repair no longer has a listener.
	require.Eventually(t, func() bool { return p.clock.Waiters() == 3 }, time.Minute, time.Millisecond)
	p.clock.Step(careDelayAfterRepair)
	assert.Equal(t, "care", p.nextAction(t))
	p.clock.Step(30*time.Second - careDelayAfterRepair)
	assert.Equal(t, "care", p.nextAction(t), "the next one is that of the interval: two repairs are judged once, and nothing is repaired again")
	p.clock.Step(30 * time.Second)
	assert.Equal(t, "care", p.nextAction(t))
}

func TestFailedRepairsAreRetried(t *testing.T) {
	p := newTestRepairer(t, "seed/bad", "virtual/bad")
	p.reportDrift(t, "seed", "good")
	p.reportDrift(t, "seed", "bad")
	p.reportDrift(t, "virtual", "bad")
	require.Eventually(t, func() bool { return p.clock.Waiters() == 4 }, time.Minute, time.Millisecond)
	p.clock.Step(30 * time.Second)
	// The delayed health check and the tick come at once, in any order.
	var did []string
	for range 4 {
		did = append(did, p.nextAction(t))
	}
	assert.ElementsMatch(t, []string{"seed/bad", "virtual/bad", "care", "care"}, did, "sets of one name on two clusters are two")

	p.clock.Step(30 * time.Second)
	did = []string{p.nextAction(t), p.nextAction(t)}
	assert.ElementsMatch(t, []string{"seed/bad", "virtual/bad"}, did, "also those that failed again")
	assert.Equal(t, "care", p.nextAction(t), "judged after the repairs")
}

func TestRepairedSetsAreNotRepairedAgain(t *testing.T) {
	p := newTestRepairer(t, "seed/bad")
	p.reportDrift(t, "seed", "bad")
	require.Eventually(t, func() bool { return p.clock.Waiters() == 2 }, time.Minute, time.Millisecond)
	p.clock.Step(careDelayAfterRepair)
	require.Equal(t, "care", p.nextAction(t))
	p.clock.Step(30*time.Second - careDelayAfterRepair)
	require.Equal(t, "seed/bad", p.nextAction(t), "it is tried again")
	p.brokenSets["seed/bad"] = false // the next attempt succeeds
	require.Equal(t, "care", p.nextAction(t))
	p.clock.Step(30 * time.Second)
	require.Equal(t, "seed/bad", p.nextAction(t))
	require.Equal(t, "care", p.nextAction(t))
	p.clock.Step(30 * time.Second)
	assert.Equal(t, "care", p.nextAction(t), "it was repaired")
}
