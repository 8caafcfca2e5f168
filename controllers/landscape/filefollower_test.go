// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// followTest is a landscape whose files a test changes, with the recorded calls.
type followTest struct {
	*testing.T
	clock *clocktesting.FakeClock
	first *Converger
	ended chan error
	stop  context.CancelFunc

	mu         sync.Mutex
	files      string
	invalid    bool
	fileChecks int
	reloads    []*Converger

	// applyCalls receives every converger that is applied; Apply returns when its context ends, or
	// with a value of applyResults.
	applyCalls   chan applyCall
	applyResults chan applyResult
}

type applyCall struct {
	ctx       context.Context
	converger *Converger
	attempt   int
}

// applyResult is the result of Apply.
type applyResult struct {
	retryAfter time.Duration
	err        error
}

func newBareConverger(clk *clocktesting.FakeClock, clusters map[string]*apply.Cluster) *Converger {
	c := &Converger{runs: &permit.RunLedger{}, members: ownerSet{fleet: newFleet(clk)}, options: Options{Clock: clk, Timing: Timing{CareInterval: time.Hour}}, connections: clusterConnections{clusters: clusters, engine: conventions.NewEngine(apply.Options{Clock: clk})}}
	c.leaseState.leaseContext, c.leaseState.cancelLeases = context.WithCancelCause(context.Background())
	return c
}

func startFollow(t *testing.T, clusters func() map[string]*apply.Cluster) *followTest {
	f := &followTest{
		T: t, clock: clocktesting.NewFakeClock(time.Now()), files: "a", ended: make(chan error, 1),
		applyCalls: make(chan applyCall, 9), applyResults: make(chan applyResult),
	}
	f.first = newBareConverger(f.clock, clusters())
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	following := FileFollower{
		Clock: f.clock,
		FilesFingerprint: func() (string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.fileChecks++
			return f.files, nil
		},
		Reload: func(context.Context) (*Converger, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.invalid {
				f.reloads = append(f.reloads, nil)
				return nil, errors.New("not valid")
			}
			c := newBareConverger(f.clock, clusters())
			f.reloads = append(f.reloads, c)
			return c, nil
		},
		Apply: func(ctx context.Context, c *Converger, attempt int) (time.Duration, error) {
			f.applyCalls <- applyCall{ctx, c, attempt}
			select {
			case <-ctx.Done():
				return 0, nil
			case got := <-f.applyResults:
				return got.retryAfter, got.err
			}
		},
	}
	go func() { f.ended <- following.Follow(ctx, f.first) }()
	t.Cleanup(f.stop)
	eventually(t, "the first look", func() bool { return f.fileCheckCount() == 1 })
	require.Same(t, f.first, f.nextApplyCall().converger)
	return f
}

func (f *followTest) fileCheckCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fileChecks
}

func (f *followTest) reloaded() []*Converger {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloads
}

// stepInterval waits for one interval.
func (f *followTest) stepInterval() {
	f.Helper()
	before := f.fileCheckCount()
	f.clock.Step(fileCheckInterval)
	eventually(f.T, "the files to be looked at", func() bool { return f.fileCheckCount() > before })
}

func (f *followTest) write(files string, invalid bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files, f.invalid = files, invalid
}

func (f *followTest) nextApplyCall() applyCall {
	f.Helper()
	select {
	case a := <-f.applyCalls:
		return a
	case <-time.After(20 * time.Second):
		require.FailNow(f, "nothing is applied")
		return applyCall{}
	}
}

func noClusters() map[string]*apply.Cluster { return nil }

func TestFollowAppliesStableValidFiles(t *testing.T) {
	f := startFollow(t, noClusters)
	f.applyResults <- applyResult{}
	f.stepInterval()
	f.stepInterval()
	assert.Empty(t, f.reloaded(), "nothing has changed")

	f.write("b", true)
	f.stepInterval()
	assert.Empty(t, f.reloaded(), "files may be in the middle of a checkout")
	f.stepInterval()
	eventually(t, "the new state to be read", func() bool { return len(f.reloaded()) == 1 })
	f.stepInterval()
	f.stepInterval()
	assert.Len(t, f.reloaded(), 1, "what is not valid is said once")
	assert.Empty(t, f.applyCalls)
	assert.NoError(t, f.first.leaseState.leaseContext.Err(), "the former state stays in force")

	f.write("c", false)
	f.stepInterval()
	f.stepInterval()
	one := f.nextApplyCall()
	assert.Same(t, f.reloaded()[1], one.converger)
	assert.Error(t, f.first.leaseState.leaseContext.Err(), "the former one is closed")
	f.applyResults <- applyResult{}
	f.stepInterval()
	assert.NoError(t, one.ctx.Err(), "it is kept")
	assert.NoError(t, one.converger.leaseState.leaseContext.Err())

	f.stop()
	require.NoError(t, <-f.ended)
	assert.Error(t, one.converger.leaseState.leaseContext.Err(), "nothing stays open")
}

func TestFollowCancelsRunForNewerFiles(t *testing.T) {
	f := startFollow(t, noClusters)
	f.write("b", false)
	f.stepInterval()
	f.stepInterval()
	waiting := f.nextApplyCall()
	f.write("c", true)
	f.stepInterval()
	f.stepInterval()
	eventually(t, "the new state to be read", func() bool { return len(f.reloaded()) == 2 })
	assert.NoError(t, waiting.ctx.Err(), "nobody gives up for something that is not valid")
	f.write("d", false)
	f.stepInterval()
	f.stepInterval()
	newer := f.nextApplyCall()
	assert.Error(t, waiting.ctx.Err())
	assert.NotSame(t, waiting.converger, newer.converger)
	f.stop()
	require.NoError(t, <-f.ended)
}

// TestFollowRetriesIncompleteApply checks that an incomplete apply is retried, and that newer files
// still cancel it.
func TestFollowRetriesIncompleteApply(t *testing.T) {
	f := startFollow(t, noClusters)
	f.applyResults <- applyResult{retryAfter: time.Minute}
	// the tickers of files and care, and this timer
	eventually(t, "the wait", func() bool { return f.clock.Waiters() > 2 })
	f.clock.Step(59 * time.Second)
	assert.Empty(t, f.applyCalls)
	f.clock.Step(time.Second)
	again := f.nextApplyCall()
	assert.Same(t, f.first, again.converger)
	assert.Equal(t, 1, again.attempt)
	f.applyResults <- applyResult{retryAfter: time.Hour}

	f.write("b", false)
	f.stepInterval()
	f.stepInterval()
	newer := f.nextApplyCall()
	assert.Same(t, f.reloaded()[0], newer.converger)
	assert.Equal(t, 0, newer.attempt)
	f.applyResults <- applyResult{err: errors.New("held by others")}
	assert.EqualError(t, <-f.ended, "held by others")
}

func TestApplyRetryPause(t *testing.T) {
	assert.Equal(t, 15*time.Second, ApplyRetryPause(0))
	assert.Equal(t, 30*time.Second, ApplyRetryPause(1))
	assert.Equal(t, 4*time.Minute, ApplyRetryPause(4))
	for _, attempt := range []int{5, 8, 100, 1 << 40} {
		assert.Equal(t, 5*time.Minute, ApplyRetryPause(attempt))
	}
}

func TestFollowEndsWithALostLease(t *testing.T) {
	f := startFollow(t, noClusters)
	f.applyResults <- applyResult{}
	f.first.leaseState.cancelLeases(&owner.LeaseLostError{Err: errors.New("held by somebody")})
	assert.ErrorContains(t, <-f.ended, "held by somebody")
}

// TestFollowHandsLeasesOver checks that leases pass from one converger to the next without being
// free in between.
func TestFollowHandsLeasesOver(t *testing.T) {
	needsServer(t)
	f := startFollow(t, func() map[string]*apply.Cluster { return map[string]*apply.Cluster{"test": testCluster(t)} })
	l := &leaseTest{T: t, name: fmt.Sprintf("lease-%d", server.count.Add(1)), clock: f.clock}
	got, err := acquireLease(testContext(t), f.first.connections.clusters["test"], l.name, "we", f.clock, func(err error) { f.first.leaseState.cancelLeases(err) }, leaseObservation{}, nil)
	require.NoError(t, err)
	f.first.mu.Lock()
	f.first.leaseState.leases = []*heldLease{got}
	f.first.mu.Unlock()

	f.write("b", false)
	f.stepInterval()
	f.stepInterval()
	next := f.nextApplyCall()
	assert.True(t, next.converger.hasLease("test", l.name))
	assert.False(t, f.first.hasLease("test", l.name))
	assert.Equal(t, "we", *l.readLease().Spec.HolderIdentity)
	f.applyResults <- applyResult{}
	before := l.readLease().Spec.RenewTime
	eventually(t, "a renewal by the new connections", func() bool {
		f.clock.Step(leaseRetryInterval)
		return before.Before(l.readLease().Spec.RenewTime)
	})
	assert.Positive(t, next.converger.connections.clusters["test"].Requests()["update"])

	l.writeAs("thief", f.clock.Now())
	eventually(t, "the end", func() bool {
		f.clock.Step(leaseRetryInterval)
		return len(f.ended) > 0
	})
	assert.ErrorContains(t, <-f.ended, "held by thief")
}

func TestFingerprint(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	files := fstest.MapFS{
		"land/a.yaml":      {Data: []byte("a"), ModTime: at(1)},
		"land/deep/b.yaml": {Data: []byte("b"), ModTime: at(1)},
		"land/.hidden/key": {Data: []byte("c"), ModTime: at(1)},
		"base/c.yaml":      {Data: []byte("c"), ModTime: at(1)},
		"other/d.yaml":     {Data: []byte("d"), ModTime: at(1)},
	}
	look := func() string {
		t.Helper()
		out, err := Fingerprint(files, "land", "base")
		require.NoError(t, err)
		return out
	}
	was := look()
	assert.Equal(t, was, look())
	files["other/d.yaml"] = &fstest.MapFile{Data: []byte("dd"), ModTime: at(2)}
	files["land/.hidden/key"] = &fstest.MapFile{Data: []byte("dd"), ModTime: at(2)}
	assert.Equal(t, was, look(), "that is no part of the landscape")
	for name, change := range map[string]func(){
		"a later time":        func() { files["land/deep/b.yaml"].ModTime = at(2) },
		"another size":        func() { files["base/c.yaml"].Data = []byte("cc") },
		"a new file":          func() { files["land/new.yaml"] = &fstest.MapFile{} },
		"a file that is gone": func() { delete(files, "land/a.yaml") },
	} {
		before := look()
		change()
		assert.NotEqual(t, before, look(), name)
	}
	_, err := Fingerprint(files, "nowhere")
	assert.ErrorContains(t, err, "read the files of nowhere")
}
