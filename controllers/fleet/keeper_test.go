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

// played is a running Keeper whose Repair and Care only record their calls.
type played struct {
	clock  *testclock.FakeClock
	events chan apply.DriftEvent
	// did receives the actions: cluster/set for an attempted repair, care for a health check.
	did chan string
	// broken sets, as cluster/set, cannot be repaired.
	broken map[string]bool
}

func play(t *testing.T, broken ...string) *played {
	t.Helper()
	p := &played{clock: testclock.NewFakeClock(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)), events: make(chan apply.DriftEvent), did: make(chan string), broken: map[string]bool{}}
	for _, set := range broken {
		p.broken[set] = true
	}
	tell := func(ctx context.Context, what string) {
		select {
		case p.did <- what:
		case <-ctx.Done():
		}
	}
	k := Keeper{
		Clock: p.clock, CareInterval: 30 * time.Second,
		Repair: func(ctx context.Context, e apply.DriftEvent) bool {
			set := e.Cluster + "/" + e.Set
			bad := p.broken[set]
			tell(ctx, set)
			return !bad
		},
		Care: func(ctx context.Context) { tell(ctx, "care") },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.work(ctx, p.events)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	require.Eventually(t, p.clock.HasWaiters, time.Minute, time.Millisecond, "the rounds of care")
	return p
}

// next returns the next action of the Keeper.
func (p *played) next(t *testing.T) string {
	t.Helper()
	select {
	case what := <-p.did:
		return what
	case <-time.After(time.Minute):
		require.Fail(t, "it does nothing")
		return ""
	}
}

// found sends a drift event, and expects the attempt to repair it.
func (p *played) found(t *testing.T, cluster, set string) {
	t.Helper()
	p.events <- apply.DriftEvent{Cluster: cluster, Set: set}
	require.Equal(t, cluster+"/"+set, p.next(t))
}

func TestHealthIsJudgedSoonAfterARepair(t *testing.T) {
	p := play(t)
	p.found(t, "seed", "a")
	p.found(t, "seed", "b")
	// The ticker and both timers: the timer of the first repair has no listener any more.
	require.Eventually(t, func() bool { return p.clock.Waiters() == 3 }, time.Minute, time.Millisecond)
	p.clock.Step(judgeRepaired)
	assert.Equal(t, "care", p.next(t))
	p.clock.Step(30*time.Second - judgeRepaired)
	assert.Equal(t, "care", p.next(t), "the next one is that of the interval: two repairs are judged once, and nothing is repaired again")
	p.clock.Step(30 * time.Second)
	assert.Equal(t, "care", p.next(t))
}

func TestFailedRepairsAreTriedAgain(t *testing.T) {
	p := play(t, "seed/bad", "virtual/bad")
	p.found(t, "seed", "good")
	p.found(t, "seed", "bad")
	p.found(t, "virtual", "bad")
	require.Eventually(t, func() bool { return p.clock.Waiters() == 4 }, time.Minute, time.Millisecond)
	p.clock.Step(30 * time.Second)
	// The delayed health check and the tick come at once, in any order.
	var did []string
	for range 4 {
		did = append(did, p.next(t))
	}
	assert.ElementsMatch(t, []string{"seed/bad", "virtual/bad", "care", "care"}, did, "sets of one name on two clusters are two")

	p.clock.Step(30 * time.Second)
	did = []string{p.next(t), p.next(t)}
	assert.ElementsMatch(t, []string{"seed/bad", "virtual/bad"}, did, "also those that failed again")
	assert.Equal(t, "care", p.next(t), "judged after the repairs")
}

func TestWhatWasRepairedIsLeftAlone(t *testing.T) {
	p := play(t, "seed/bad")
	p.found(t, "seed", "bad")
	require.Eventually(t, func() bool { return p.clock.Waiters() == 2 }, time.Minute, time.Millisecond)
	p.clock.Step(judgeRepaired)
	require.Equal(t, "care", p.next(t))
	p.clock.Step(30*time.Second - judgeRepaired)
	require.Equal(t, "seed/bad", p.next(t), "it is tried again")
	p.broken["seed/bad"] = false // the next attempt succeeds
	require.Equal(t, "care", p.next(t))
	p.clock.Step(30 * time.Second)
	require.Equal(t, "seed/bad", p.next(t))
	require.Equal(t, "care", p.next(t))
	p.clock.Step(30 * time.Second)
	assert.Equal(t, "care", p.next(t), "it was repaired")
}
