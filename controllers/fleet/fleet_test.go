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

// ship is an owner controlled by a test.
type ship struct {
	mu       sync.Mutex
	left     bool
	repaired []string
	mends    bool
	cared    int
	// unrendered: its objects are unknown. foreign: it has none of the objects.
	unrendered, foreign bool
	// onCare and onRepair are called by Care and Repair; nil for nothing.
	onCare, onRepair func(context.Context)
}

func (s *ship) Left() (something, rendered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left, s.left && !s.unrendered
}

func (s *ship) Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onRepair != nil {
		s.onRepair(ctx)
	}
	if s.unrendered || s.foreign {
		return false, false
	}
	s.repaired = append(s.repaired, e.Ref.Name)
	return true, s.mends
}

func (s *ship) Care(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cared++
	if s.onCare != nil {
		s.onCare(ctx)
	}
}

func (s *ship) SetOf(cluster string, managedResource apply.Ref) string {
	if cluster != "sea" {
		return ""
	}
	return managedResource.Name
}

func (s *ship) repairs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repaired
}

// harbour is a fleet whose runs a test blocks and ends.
type harbour struct {
	*testing.T
	*Fleet[*ship]
	clock *testclock.FakeClock
	// begun receives the member and digest of each new run; ended receives its result and the time
	// until the next one.
	begun, ended chan string
	// results end runs, by member.
	results map[string]chan error
}

func newHarbour(t *testing.T, slots int, ids ...string) *harbour {
	h := &harbour{T: t, clock: testclock.NewFakeClock(time.Unix(0, 0)), begun: make(chan string, 100), ended: make(chan string, 1000), results: map[string]chan error{}}
	for _, id := range ids {
		h.results[id] = make(chan error, 100)
	}
	h.Fleet = New(Options[*ship]{Clock: h.clock, Slots: slots, RetryInterval: time.Second, LongestRetry: 3 * time.Second, SyncPeriod: time.Hour,
		Ended: func(m Member[*ship], _ *ship, err error, next time.Duration) {
			h.ended <- fmt.Sprintf("%s %s %v %s", m.ID, m.Digest, err, next.Truncate(time.Hour/5))
			if next < time.Hour {
				h.ended <- next.String()
			}
		}})
	t.Cleanup(func() { h.Stop(nil) })
	return h
}

func (h *harbour) member(id, digest string, after ...string) Member[*ship] {
	return Member[*ship]{ID: id, Digest: digest, After: after, New: func() *ship { return &ship{mends: true} }, Take: func(*ship) {},
		Converge: func(ctx context.Context, s *ship) error {
			h.begun <- id + " " + digest
			select {
			case err := <-h.results[id]:
				s.mu.Lock()
				s.left = true
				s.mu.Unlock()
				return err
			case <-ctx.Done():
				h.ended <- fmt.Sprintf("%s %s given up: %v", id, digest, context.Cause(ctx))
				return ctx.Err()
			}
		}}
}

func (h *harbour) hears(from <-chan string, want string) {
	h.Helper()
	select {
	case got := <-from:
		require.Equal(h, want, got)
	case <-time.After(time.Minute):
		require.Fail(h, "nothing came", want)
	}
}

func (h *harbour) silent(from <-chan string) {
	h.Helper()
	select {
	case got := <-from:
		require.Fail(h, "something came", got)
	default:
	}
}

// giveWay lets all other goroutines run, so that a race has time to show.
func giveWay() {
	for range 1000 {
		runtime.Gosched()
	}
}

// timer waits until a member waits for its next run.
func (h *harbour) timer() {
	h.Helper()
	require.Eventually(h, h.clock.HasWaiters, time.Minute, time.Millisecond)
}

// TestOrder checks that a member begins after its dependencies succeeded, and that no more members
// run at a time than there are slots.
func TestOrder(t *testing.T) {
	h := newHarbour(t, 1, "seed", "one", "two")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1", "seed"), h.member("two", "1", "seed"), h.member("seed", "1")})
	assert.Equal(t, []string{"one", "seed", "two"}, h.IDs())
	h.hears(h.begun, "seed 1")
	h.results["seed"] <- errors.New("no")
	h.hears(h.ended, "seed 1 no 0s")
	h.hears(h.ended, "1s")
	h.timer()
	assert.Equal(t, map[string]Status{"seed": {State: Failing}, "one": {State: Waiting}, "two": {State: Waiting}}, h.Statuses())
	h.silent(h.begun)
	h.clock.Step(time.Second)
	h.hears(h.begun, "seed 1")
	h.results["seed"] <- nil
	h.hears(h.ended, "seed 1 <nil> 1h0m0s")
	first := <-h.begun
	h.silent(h.begun)
	other := map[string]string{"one 1": "two", "two 1": "one"}[first]
	require.NotEmpty(t, other, first)
	h.results["one"] <- nil
	h.results["two"] <- nil
	h.hears(h.begun, other+" 1")
}

// TestOrderAfterAFailure checks that a member waits for members whose last run failed, although an
// earlier one succeeded.
func TestOrderAfterAFailure(t *testing.T) {
	h := newHarbour(t, 1, "seed", "one")
	seed := h.member("seed", "1")
	h.Set(t.Context(), []Member[*ship]{seed})
	for _, result := range []error{nil, errors.New("no")} {
		h.hears(h.begun, "seed 1")
		h.results["seed"] <- result
		h.hears(h.ended, fmt.Sprintf("seed 1 %v %s", result, map[bool]string{true: "1h0m0s", false: "0s"}[result == nil]))
		if result == nil {
			h.timer()
			h.Trigger("seed")
		}
	}
	h.hears(h.ended, "1s")
	h.timer()
	h.Set(t.Context(), []Member[*ship]{seed, h.member("one", "1", "seed")})
	giveWay()
	h.clock.Step(time.Second)
	h.hears(h.begun, "seed 1")
	h.results["seed"] <- nil
	h.hears(h.ended, "seed 1 <nil> 1h0m0s")
	h.hears(h.begun, "one 1")
}

// TestSlots checks that exactly as many members of a pool run at a time as there are slots.
func TestSlots(t *testing.T) {
	h := newHarbour(t, 2)
	var mu sync.Mutex
	atWork, most, runs := 0, 0, make(chan struct{}, 100)
	note := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		atWork += n
		most = max(most, atWork)
	}
	meet := make(chan struct{})
	var members []Member[*ship]
	for i := range 6 {
		members = append(members, Member[*ship]{ID: fmt.Sprint(i), Digest: "1", New: func() *ship { return &ship{} }, Converge: func(ctx context.Context, _ *ship) error {
			note(1)
			defer note(-1)
			giveWay() // a member beyond the limit would start here
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

// TestInputsComeBeforeRuns checks that all members have their new input before the first run
// begins.
func TestInputsComeBeforeRuns(t *testing.T) {
	h := newHarbour(t, 1)
	const many = 500 // so that a run that does not wait has time to begin
	var taken atomic.Int32
	begun := make(chan int32, many)
	var members []Member[*ship]
	for i := range many {
		members = append(members, Member[*ship]{ID: fmt.Sprint(i), Digest: "1", Pool: fmt.Sprint(i), New: func() *ship { return &ship{} },
			Take: func(*ship) { taken.Add(1) }, Converge: func(context.Context, *ship) error { begun <- taken.Load(); return nil }})
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
		giveWay()
		mu.Lock()
		defer mu.Unlock()
		ended[what] = true
	}
	for _, all := range []bool{false, true} {
		h := newHarbour(t, 8)
		begun := make(chan string, 10)
		running := func(id string) Member[*ship] {
			return Member[*ship]{ID: id, Digest: "1", New: func() *ship { return &ship{} }, Converge: func(ctx context.Context, _ *ship) error {
				begun <- id
				until(ctx, id)
				return ctx.Err()
			}}
		}
		idle := func(id string, s *ship) Member[*ship] { return Member[*ship]{ID: id, New: func() *ship { return s }} }
		judged := &ship{left: true, onCare: func(ctx context.Context) { begun <- "care"; until(ctx, "care") }}
		mended := &ship{left: true, onRepair: func(ctx context.Context) { begun <- "repair"; until(ctx, "repair") }}
		h.Set(t.Context(), []Member[*ship]{idle("mended", mended)})
		go h.Repair(t.Context(), apply.DriftEvent{Ref: apply.Ref{Name: "a"}})
		h.hears(begun, "repair")
		members := []Member[*ship]{idle("mended", mended), idle("judged", judged)}
		if all {
			members = append(members, running("one"), running("two"))
		}
		h.Set(t.Context(), members)
		go h.Care(t.Context())
		h.hears(begun, "care")
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
	h := newHarbour(t, 1, "one")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1")})
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		h.hears(h.begun, "one 1")
		h.results["one"] <- errors.New("no")
		h.hears(h.ended, "one 1 no 0s")
		h.hears(h.ended, wait.String())
		h.timer()
		h.clock.Step(wait)
	}
	h.hears(h.begun, "one 1")
	h.results["one"] <- nil
	h.hears(h.ended, "one 1 <nil> 1h0m0s")
	h.timer()
	h.Trigger("one")
	h.hears(h.begun, "one 1")
	h.results["one"] <- errors.New("no")
	h.hears(h.ended, "one 1 no 0s")
	h.hears(h.ended, "1s")
}

// TestSet checks that only a new digest supersedes a run, and that Set drops unlisted members once
// nothing works on them.
func TestSet(t *testing.T) {
	h := newHarbour(t, 2, "one", "two")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1"), h.member("two", "1")})
	_, _ = <-h.begun, <-h.begun
	one, known := h.Owner("one")
	require.True(t, known)
	h.Set(t.Context(), []Member[*ship]{h.member("one", "2"), h.member("two", "1")})
	h.hears(h.ended, "one 1 given up: "+errSuperseded.Error())
	h.hears(h.begun, "one 2")
	again, _ := h.Owner("one")
	assert.Same(t, one, again, "the owner stays from run to run")
	assert.Empty(t, h.Set(t.Context(), []Member[*ship]{{ID: "one"}, h.member("two", "1")}), "a member without a run stays as it is")
	h.silent(h.ended)
	dropped := h.Set(t.Context(), []Member[*ship]{h.member("two", "1")})
	require.Len(t, dropped, 1)
	assert.Same(t, one, dropped[0])
	h.hears(h.ended, "one 2 given up: "+errDropped.Error())
	assert.Equal(t, []string{"two"}, h.IDs())
	_, known = h.Owner("one")
	assert.False(t, known)
	h.Trigger("one") // no goroutine receives it
}

// TestConverge checks that members run once, each after its dependencies, and that a member is
// skipped after a failure. Pools do not share slots.
func TestConverge(t *testing.T) {
	h := newHarbour(t, 1, "seed", "other", "one", "two", "three")
	in := func(pool string, m Member[*ship]) Member[*ship] {
		m.Pool = pool
		return m
	}
	members := []Member[*ship]{
		in("seed", h.member("one", "1", "seed")), in("seed", h.member("two", "1", "seed")), in("other", h.member("three", "1", "other")), h.member("seed", "1"),
		in("others", h.member("other", "1")),
	}
	converge := func() <-chan []error {
		out := make(chan []error, 1)
		go func() { out <- h.Converge(t.Context(), members) }()
		return out
	}
	got := converge()
	assert.ElementsMatch(t, []string{"seed 1", "other 1"}, []string{<-h.begun, <-h.begun}, "side by side, though a pool has one slot")
	no := errors.New("no")
	h.results["other"] <- no
	h.results["seed"] <- nil
	first := <-h.begun
	h.silent(h.begun)
	h.results[strings.Fields(first)[0]] <- nil
	second := <-h.begun
	assert.ElementsMatch(t, []string{"one 1", "two 1"}, []string{first, second})
	h.results[strings.Fields(second)[0]] <- nil
	assert.Equal(t, []error{nil, nil, &LeftOutError{After: "other"}, nil, no}, <-got)
	assert.Equal(t, map[string]Status{"seed": {State: Converged}, "one": {State: Converged}, "two": {State: Converged}, "three": {State: Waiting}, "other": {State: Failing}}, h.Statuses())

	// An earlier success does not count for a member that is skipped now.
	members = []Member[*ship]{h.member("seed", "2", "nobody"), h.member("one", "2", "seed")}
	assert.Equal(t, []error{&LeftOutError{After: "nobody"}, &LeftOutError{After: "seed"}}, <-converge())
	// An earlier success counts for members that do not run now.
	members = []Member[*ship]{h.member("one", "2", "seed")}
	got = converge()
	h.hears(h.begun, "one 2")
	h.results["one"] <- nil
	assert.Equal(t, []error{nil}, <-got)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(no)
	h.slotsOf("") <- struct{}{}
	require.EqualError(t, errors.Join(h.Converge(ctx, members)...), "one: its turn did not come: no")
}

// TestIdleMembers checks that a member without a run is repaired and judged, and can be dropped.
func TestIdleMembers(t *testing.T) {
	h := newHarbour(t, 1)
	one := &ship{left: true, mends: true}
	h.Set(t.Context(), []Member[*ship]{{ID: "one", New: func() *ship { return one }}})
	assert.Equal(t, []string{"a"}, h.SetsOf("sea", apply.Ref{Name: "a"}))
	assert.Empty(t, h.SetsOf("land", apply.Ref{Name: "a"}))
	assert.True(t, h.Repair(t.Context(), apply.DriftEvent{Ref: apply.Ref{Name: "a"}}))
	assert.Equal(t, []string{"a"}, one.repairs())
	h.Care(t.Context())
	assert.Equal(t, 1, one.cared)
	assert.Equal(t, []*ship{one}, h.Set(t.Context(), nil))
}

// TestTrigger checks that several triggers count as one, and that a trigger during a run causes one
// more.
func TestTrigger(t *testing.T) {
	h := newHarbour(t, 1, "one")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1")})
	h.hears(h.begun, "one 1")
	for range 10 {
		h.Trigger("one")
	}
	h.Set(t.Context(), []Member[*ship]{{ID: "one", Again: true}})
	h.results["one"] <- nil
	h.hears(h.ended, "one 1 <nil> 1h0m0s")
	h.hears(h.begun, "one 1")
	h.results["one"] <- nil
	h.hears(h.ended, "one 1 <nil> 1h0m0s")
	h.timer()
	h.silent(h.begun)

	// A waiting run covers the triggers that arrive before it begins.
	h = newHarbour(t, 1, "one", "two")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1")})
	h.hears(h.begun, "one 1")
	h.Set(t.Context(), []Member[*ship]{h.member("one", "1"), h.member("two", "1")})
	giveWay()
	h.Trigger("two")
	h.results["one"] <- nil
	h.hears(h.ended, "one 1 <nil> 1h0m0s")
	h.hears(h.begun, "two 1")
	h.results["two"] <- nil
	h.hears(h.ended, "two 1 <nil> 1h0m0s")
	require.Eventually(h, func() bool { return h.clock.Waiters() == 2 }, time.Minute, time.Millisecond)
	giveWay()
	h.silent(h.begun)
}
