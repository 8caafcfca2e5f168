// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
)

// fakeOwner is an owner controlled by a test.
type fakeOwner struct {
	mu             sync.Mutex
	hasObjects     bool
	repaired       []string
	repairSucceeds bool
	careCalls      int
	// unrendered: its objects are unknown. foreign: it has none of the objects.
	unrendered, hasNoObjects bool
	// onCare and onRepair are called by Care and Repair; it is nil for nothing.
	onCare, onRepair func(context.Context)
}

func (s *fakeOwner) HasObjects() (something, rendered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasObjects, s.hasObjects && !s.unrendered
}

func (s *fakeOwner) Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onRepair != nil {
		s.onRepair(ctx)
	}
	if s.unrendered || s.hasNoObjects {
		return false, false
	}
	s.repaired = append(s.repaired, e.Ref.Name)
	return true, s.repairSucceeds
}

func (s *fakeOwner) Care(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.careCalls++
	if s.onCare != nil {
		s.onCare(ctx)
	}
}

func (s *fakeOwner) SetOf(cluster string, managedResource apply.Ref) string {
	if cluster != "sea" {
		return ""
	}
	return managedResource.Name
}

func (s *fakeOwner) repairs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repaired
}

// testFleet is a fleet whose runs a test blocks and ends.
type testFleet struct {
	*testing.T
	*Fleet[*fakeOwner]
	clock *testclock.FakeClock
	// runStarts receives the member and digest of each new run; ended receives its result and the
	// time until the next one.
	runStarts, runEnds chan string
	// results end runs, by member.
	results map[string]chan error
}

func newTestFleet(t *testing.T, slots int, ids ...string) *testFleet {
	h := &testFleet{T: t, clock: testclock.NewFakeClock(time.Unix(0, 0)), runStarts: make(chan string, 100), runEnds: make(chan string, 1000), results: map[string]chan error{}}
	for _, id := range ids {
		h.results[id] = make(chan error, 100)
	}
	h.Fleet = New(Options[*fakeOwner]{Clock: h.clock, Slots: slots, RetryInterval: time.Second, MaxRetryInterval: 3 * time.Second, SyncPeriod: time.Hour,
		OnRunEnd: func(m Member[*fakeOwner], _ *fakeOwner, err error, next time.Duration) {
			h.runEnds <- fmt.Sprintf("%s %s %v %s", m.ID, m.Digest, err, next.Truncate(time.Hour/5))
			if next < time.Hour {
				h.runEnds <- next.String()
			}
		}})
	t.Cleanup(func() { h.Stop(nil) })
	return h
}

func (h *testFleet) member(id, digest string, after ...string) Member[*fakeOwner] {
	return Member[*fakeOwner]{ID: id, Digest: digest, After: after, New: func() *fakeOwner { return &fakeOwner{repairSucceeds: true} }, SetInput: func(*fakeOwner) {},
		Converge: func(ctx context.Context, s *fakeOwner) error {
			h.runStarts <- id + " " + digest
			select {
			case err := <-h.results[id]:
				s.mu.Lock()
				s.hasObjects = true
				s.mu.Unlock()
				return err
			case <-ctx.Done():
				h.runEnds <- fmt.Sprintf("%s %s given up: %v", id, digest, context.Cause(ctx))
				return ctx.Err()
			}
		}}
}

func (h *testFleet) expect(from <-chan string, want string) {
	h.Helper()
	select {
	case got := <-from:
		require.Equal(h, want, got)
	case <-time.After(time.Minute):
		require.Fail(h, "nothing came", want)
	}
}

func (h *testFleet) expectNothing(from <-chan string) {
	h.Helper()
	select {
	case got := <-from:
		require.Fail(h, "something came", got)
	default:
	}
}

// yieldGoroutine lets all other goroutines run, so that a race has time to show.
func yieldGoroutine() {
	for range 1000 {
		runtime.Gosched()
	}
}

// waitForTimer waits until a member waits for its next run.
func (h *testFleet) waitForTimer() {
	h.Helper()
	require.Eventually(h, h.clock.HasWaiters, time.Minute, time.Millisecond)
}

// TestMembersRunAfterDependencies checks that a member begins after its dependencies succeeded, and
// that no more members run at a time than there are slots.
func TestMembersRunAfterDependencies(t *testing.T) {
	h := newTestFleet(t, 1, "seed", "one", "two")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1", "seed"), h.member("two", "1", "seed"), h.member("seed", "1")})
	assert.Equal(t, []string{"one", "seed", "two"}, h.IDs())
	h.expect(h.runStarts, "seed 1")
	h.results["seed"] <- errors.New("no")
	h.expect(h.runEnds, "seed 1 no 0s")
	h.expect(h.runEnds, "1s")
	h.waitForTimer()
	assert.Equal(t, map[string]Status{"seed": {State: Failing}, "one": {State: Waiting}, "two": {State: Waiting}}, h.Statuses())
	h.expectNothing(h.runStarts)
	h.clock.Step(time.Second)
	h.expect(h.runStarts, "seed 1")
	h.results["seed"] <- nil
	h.expect(h.runEnds, "seed 1 <nil> 1h0m0s")
	first := <-h.runStarts
	h.expectNothing(h.runStarts)
	other := map[string]string{"one 1": "two", "two 1": "one"}[first]
	require.NotEmpty(t, other, first)
	h.results["one"] <- nil
	h.results["two"] <- nil
	h.expect(h.runStarts, other+" 1")
}

// TestOrderAfterAFailure checks that a member waits for members whose last run failed, although an
// earlier one succeeded.
func TestOrderAfterAFailure(t *testing.T) {
	h := newTestFleet(t, 1, "seed", "one")
	seed := h.member("seed", "1")
	h.Set(t.Context(), []Member[*fakeOwner]{seed})
	for _, result := range []error{nil, errors.New("no")} {
		h.expect(h.runStarts, "seed 1")
		h.results["seed"] <- result
		h.expect(h.runEnds, fmt.Sprintf("seed 1 %v %s", result, map[bool]string{true: "1h0m0s", false: "0s"}[result == nil]))
		if result == nil {
			h.waitForTimer()
			h.Trigger("seed")
		}
	}
	h.expect(h.runEnds, "1s")
	h.waitForTimer()
	h.Set(t.Context(), []Member[*fakeOwner]{seed, h.member("one", "1", "seed")})
	yieldGoroutine()
	h.clock.Step(time.Second)
	h.expect(h.runStarts, "seed 1")
	h.results["seed"] <- nil
	h.expect(h.runEnds, "seed 1 <nil> 1h0m0s")
	h.expect(h.runStarts, "one 1")
}

// TestPoolSlotsLimitRuns checks that exactly as many members of a pool run at a time as there are
// slots.
func TestPoolSlotsLimitRuns(t *testing.T) {
	h := newTestFleet(t, 2)
	var mu sync.Mutex
	atWork, most, runs := 0, 0, make(chan struct{}, 100)
	note := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		atWork += n
		most = max(most, atWork)
	}
	meet := make(chan struct{})
	var members []Member[*fakeOwner]
	for i := range 6 {
		members = append(members, Member[*fakeOwner]{ID: fmt.Sprint(i), Digest: "1", New: func() *fakeOwner { return &fakeOwner{} }, Converge: func(ctx context.Context, _ *fakeOwner) error {
			note(1)
			defer note(-1)
			yieldGoroutine() // a member beyond the limit would start here
			select {
			case meet <- struct{}{}: // two work at a time
			case <-meet:
			case <-ctx.Done():
			}
			runs <- struct{}{}
			return nil
		}})
	}
	h.Set(t.Context(), members)
	for range members {
		<-runs
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, 2, most)
}

// TestInputsAreSetBeforeRuns checks that all members have their new input before the first run
// begins.
func TestInputsAreSetBeforeRuns(t *testing.T) {
	h := newTestFleet(t, 1)
	const many = 500 // so that a run that does not wait has time to begin
	var taken atomic.Int32
	begun := make(chan int32, many)
	var members []Member[*fakeOwner]
	for i := range many {
		members = append(members, Member[*fakeOwner]{ID: fmt.Sprint(i), Digest: "1", Pool: fmt.Sprint(i), New: func() *fakeOwner { return &fakeOwner{} },
			SetInput: func(*fakeOwner) { taken.Add(1) }, Converge: func(context.Context, *fakeOwner) error { begun <- taken.Load(); return nil }})
	}
	h.Set(t.Context(), members)
	for range members {
		require.EqualValues(t, many, <-begun)
	}
}

// TestNothingWorksOnADroppedMember checks that the run, a health check or a repair of a dropped
// member ends before Set returns it. All members end at the same time.
func TestNothingWorksOnADroppedMember(t *testing.T) {
	var ends sync.WaitGroup // nothing ends before all members are notified
	ended := map[string]bool{}
	var mu sync.Mutex
	until := func(ctx context.Context, what string) {
		<-ctx.Done()
		ends.Done()
		ends.Wait()
		yieldGoroutine()
		mu.Lock()
		defer mu.Unlock()
		ended[what] = true
	}
	for _, all := range []bool{false, true} {
		h := newTestFleet(t, 8)
		begun := make(chan string, 10)
		running := func(id string) Member[*fakeOwner] {
			return Member[*fakeOwner]{ID: id, Digest: "1", New: func() *fakeOwner { return &fakeOwner{} }, Converge: func(ctx context.Context, _ *fakeOwner) error {
				begun <- id
				until(ctx, id)
				return ctx.Err()
			}}
		}
		idle := func(id string, s *fakeOwner) Member[*fakeOwner] {
			return Member[*fakeOwner]{ID: id, New: func() *fakeOwner { return s }}
		}
		judged := &fakeOwner{hasObjects: true, onCare: func(ctx context.Context) { begun <- "care"; until(ctx, "care") }}
		mended := &fakeOwner{hasObjects: true, onRepair: func(ctx context.Context) { begun <- "repair"; until(ctx, "repair") }}
		h.Set(t.Context(), []Member[*fakeOwner]{idle("mended", mended)})
		go h.Repair(t.Context(), apply.DriftEvent{Ref: apply.Ref{Name: "a"}})
		h.expect(begun, "repair")
		members := []Member[*fakeOwner]{idle("mended", mended), idle("judged", judged)}
		if all {
			members = append(members, running("one"), running("two"))
		}
		h.Set(t.Context(), members)
		go h.Care(t.Context())
		h.expect(begun, "care")
		clear(ended)
		if !all { // one after the other
			ends.Add(1)
			h.Set(t.Context(), members[:1])
			assert.Equal(t, map[string]bool{"care": true}, ended)
			ends.Add(1)
			h.Set(t.Context(), nil)
			assert.Equal(t, map[string]bool{"care": true, "repair": true}, ended)
			continue
		}
		assert.ElementsMatch(t, []string{"one", "two"}, []string{<-begun, <-begun})
		ends.Add(4)
		h.Stop(errors.New("over"))
		assert.Equal(t, map[string]bool{"care": true, "repair": true, "one": true, "two": true}, ended)
	}
}

// TestBackOff checks that the time between failing runs doubles up to a limit, and restarts after a
// successful run.
func TestBackOff(t *testing.T) {
	h := newTestFleet(t, 1, "one")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1")})
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		h.expect(h.runStarts, "one 1")
		h.results["one"] <- errors.New("no")
		h.expect(h.runEnds, "one 1 no 0s")
		h.expect(h.runEnds, wait.String())
		h.waitForTimer()
		h.clock.Step(wait)
	}
	h.expect(h.runStarts, "one 1")
	h.results["one"] <- nil
	h.expect(h.runEnds, "one 1 <nil> 1h0m0s")
	h.waitForTimer()
	h.Trigger("one")
	h.expect(h.runStarts, "one 1")
	h.results["one"] <- errors.New("no")
	h.expect(h.runEnds, "one 1 no 0s")
	h.expect(h.runEnds, "1s")
}

// TestSetStartsAndDropsMembers checks that only a new digest supersedes a run, and that Set drops
// unlisted members once nothing works on them.
func TestSetStartsAndDropsMembers(t *testing.T) {
	h := newTestFleet(t, 2, "one", "two")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1"), h.member("two", "1")})
	_, _ = <-h.runStarts, <-h.runStarts
	one, known := h.Owner("one")
	require.True(t, known)
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "2"), h.member("two", "1")})
	h.expect(h.runEnds, "one 1 given up: "+errSuperseded.Error())
	h.expect(h.runStarts, "one 2")
	again, _ := h.Owner("one")
	assert.Same(t, one, again, "the owner stays from run to run")
	assert.Empty(t, h.Set(t.Context(), []Member[*fakeOwner]{{ID: "one"}, h.member("two", "1")}), "a member without a run stays as it is")
	h.expectNothing(h.runEnds)
	dropped := h.Set(t.Context(), []Member[*fakeOwner]{h.member("two", "1")})
	require.Len(t, dropped, 1)
	assert.Same(t, one, dropped[0])
	h.expect(h.runEnds, "one 2 given up: "+errNoLongerMember.Error())
	assert.Equal(t, []string{"two"}, h.IDs())
	_, known = h.Owner("one")
	assert.False(t, known)
	h.Trigger("one") // no goroutine receives it
}

// TestConverge checks that members run once, each after its dependencies, and that a member is
// skipped after a failure. Pools do not share slots.
func TestConverge(t *testing.T) {
	h := newTestFleet(t, 1, "seed", "other", "one", "two", "three")
	in := func(pool string, m Member[*fakeOwner]) Member[*fakeOwner] {
		m.Pool = pool
		return m
	}
	members := []Member[*fakeOwner]{
		in("seed", h.member("one", "1", "seed")), in("seed", h.member("two", "1", "seed")), in("other", h.member("three", "1", "other")), h.member("seed", "1"),
		in("others", h.member("other", "1")),
	}
	converge := func() <-chan []error {
		out := make(chan []error, 1)
		go func() { out <- h.Converge(t.Context(), members) }()
		return out
	}
	got := converge()
	assert.ElementsMatch(t, []string{"seed 1", "other 1"}, []string{<-h.runStarts, <-h.runStarts}, "side by side, though a pool has one slot")
	no := errors.New("no")
	h.results["other"] <- no
	h.results["seed"] <- nil
	first := <-h.runStarts
	h.expectNothing(h.runStarts)
	h.results[strings.Fields(first)[0]] <- nil
	second := <-h.runStarts
	assert.ElementsMatch(t, []string{"one 1", "two 1"}, []string{first, second})
	h.results[strings.Fields(second)[0]] <- nil
	assert.Equal(t, []error{nil, nil, &DependencyError{Dependency: "other"}, nil, no}, <-got)
	assert.Equal(t, map[string]Status{"seed": {State: Converged}, "one": {State: Converged}, "two": {State: Converged}, "three": {State: Waiting}, "other": {State: Failing}}, h.Statuses())

	// An earlier success does not count for a member that is skipped now.
	members = []Member[*fakeOwner]{h.member("seed", "2", "nobody"), h.member("one", "2", "seed")}
	assert.Equal(t, []error{&DependencyError{Dependency: "nobody"}, &DependencyError{Dependency: "seed"}}, <-converge())
	// An earlier success counts for members that do not run now.
	members = []Member[*fakeOwner]{h.member("one", "2", "seed")}
	got = converge()
	h.expect(h.runStarts, "one 2")
	h.results["one"] <- nil
	assert.Equal(t, []error{nil}, <-got)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(no)
	h.poolSlots("") <- struct{}{}
	require.EqualError(t, errors.Join(h.Converge(ctx, members)...), "one: no slot became free: no")
}

// TestIdleMembers checks that a member without a run is repaired and judged, and can be dropped.
func TestIdleMembers(t *testing.T) {
	h := newTestFleet(t, 1)
	one := &fakeOwner{hasObjects: true, repairSucceeds: true}
	h.Set(t.Context(), []Member[*fakeOwner]{{ID: "one", New: func() *fakeOwner { return one }}})
	assert.Equal(t, []string{"a"}, h.SetsOf("sea", apply.Ref{Name: "a"}))
	assert.Empty(t, h.SetsOf("land", apply.Ref{Name: "a"}))
	assert.True(t, h.Repair(t.Context(), apply.DriftEvent{Ref: apply.Ref{Name: "a"}}))
	assert.Equal(t, []string{"a"}, one.repairs())
	h.Care(t.Context())
	assert.Equal(t, 1, one.careCalls)
	assert.Equal(t, []*fakeOwner{one}, h.Set(t.Context(), nil))
}

// TestTrigger checks that several triggers count as one, and that a trigger during a run causes one
// more.
func TestTrigger(t *testing.T) {
	h := newTestFleet(t, 1, "one")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1")})
	h.expect(h.runStarts, "one 1")
	for range 10 {
		h.Trigger("one")
	}
	h.Set(t.Context(), []Member[*fakeOwner]{{ID: "one", ForceRun: true}})
	h.results["one"] <- nil
	h.expect(h.runEnds, "one 1 <nil> 1h0m0s")
	h.expect(h.runStarts, "one 1")
	h.results["one"] <- nil
	h.expect(h.runEnds, "one 1 <nil> 1h0m0s")
	h.waitForTimer()
	h.expectNothing(h.runStarts)

	// A waiting run covers the triggers that arrive before it begins.
	h = newTestFleet(t, 1, "one", "two")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1")})
	h.expect(h.runStarts, "one 1")
	h.Set(t.Context(), []Member[*fakeOwner]{h.member("one", "1"), h.member("two", "1")})
	yieldGoroutine()
	h.Trigger("two")
	h.results["one"] <- nil
	h.expect(h.runEnds, "one 1 <nil> 1h0m0s")
	h.expect(h.runStarts, "two 1")
	h.results["two"] <- nil
	h.expect(h.runEnds, "two 1 <nil> 1h0m0s")
	require.Eventually(h, func() bool { return h.clock.Waiters() == 2 }, time.Minute, time.Millisecond)
	yieldGoroutine()
	h.expectNothing(h.runStarts)
}
