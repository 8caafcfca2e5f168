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

// followed is a landscape whose files a test changes, with the recorded calls.
type followed struct {
	*testing.T
	clock *clocktesting.FakeClock
	first *Converger
	ended chan error
	stop  context.CancelFunc

	mu      sync.Mutex
	files   string
	invalid bool
	looks   int
	reloads []*Converger

	// applied receives every converger that is applied; Apply returns when its context ends, or
	// with a value of goOn.
	applied chan applied
	goOn    chan tried
}

type applied struct {
	ctx     context.Context
	c       *Converger
	attempt int
}

// tried is the result of Apply.
type tried struct {
	again time.Duration
	err   error
}

func bare(clk *clocktesting.FakeClock, clusters map[string]*apply.Cluster) *Converger {
	c := &Converger{runs: &permit.RunLedger{}, members: members{fleet: newFleet(clk)}, options: Options{Clock: clk, Pace: Pace{CareInterval: time.Hour}}, links: links{clusters: clusters, engine: conventions.NewEngine(apply.Options{Clock: clk})}}
	c.role.alive, c.role.die = context.WithCancelCause(context.Background())
	return c
}

func follow(t *testing.T, clusters func() map[string]*apply.Cluster) *followed {
	f := &followed{
		T: t, clock: clocktesting.NewFakeClock(time.Now()), files: "a", ended: make(chan error, 1),
		applied: make(chan applied, 9), goOn: make(chan tried),
	}
	f.first = bare(f.clock, clusters())
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	following := Following{
		Clock: f.clock,
		Fingerprint: func() (string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.looks++
			return f.files, nil
		},
		Reload: func(context.Context) (*Converger, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.invalid {
				f.reloads = append(f.reloads, nil)
				return nil, errors.New("not valid")
			}
			c := bare(f.clock, clusters())
			f.reloads = append(f.reloads, c)
			return c, nil
		},
		Apply: func(ctx context.Context, c *Converger, attempt int) (time.Duration, error) {
			f.applied <- applied{ctx, c, attempt}
			select {
			case <-ctx.Done():
				return 0, nil
			case got := <-f.goOn:
				return got.again, got.err
			}
		},
	}
	go func() { f.ended <- following.Follow(ctx, f.first) }()
	t.Cleanup(f.stop)
	eventually(t, "the first look", func() bool { return f.seen() == 1 })
	require.Same(t, f.first, f.nextApplied().c)
	return f
}

func (f *followed) seen() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

func (f *followed) reloaded() []*Converger {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloads
}

// look waits for one interval.
func (f *followed) look() {
	f.Helper()
	before := f.seen()
	f.clock.Step(followInterval)
	eventually(f.T, "the files to be looked at", func() bool { return f.seen() > before })
}

func (f *followed) write(files string, invalid bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files, f.invalid = files, invalid
}

func (f *followed) nextApplied() applied {
	f.Helper()
	select {
	case a := <-f.applied:
		return a
	case <-time.After(20 * time.Second):
		require.FailNow(f, "nothing is applied")
		return applied{}
	}
}

func noClusters() map[string]*apply.Cluster { return nil }

func TestFollowAppliesWhatIsValidAndStill(t *testing.T) {
	f := follow(t, noClusters)
	f.goOn <- tried{}
	f.look()
	f.look()
	assert.Empty(t, f.reloaded(), "nothing has changed")

	f.write("b", true)
	f.look()
	assert.Empty(t, f.reloaded(), "files may be in the middle of a checkout")
	f.look()
	eventually(t, "the new state to be read", func() bool { return len(f.reloaded()) == 1 })
	f.look()
	f.look()
	assert.Len(t, f.reloaded(), 1, "what is not valid is said once")
	assert.Empty(t, f.applied)
	assert.NoError(t, f.first.role.alive.Err(), "the former state stays in force")

	f.write("c", false)
	f.look()
	f.look()
	one := f.nextApplied()
	assert.Same(t, f.reloaded()[1], one.c)
	assert.Error(t, f.first.role.alive.Err(), "the former one is closed")
	f.goOn <- tried{}
	f.look()
	assert.NoError(t, one.ctx.Err(), "it is kept")
	assert.NoError(t, one.c.role.alive.Err())

	f.stop()
	require.NoError(t, <-f.ended)
	assert.Error(t, one.c.role.alive.Err(), "nothing stays open")
}

func TestFollowGivesUpARunForANewerState(t *testing.T) {
	f := follow(t, noClusters)
	f.write("b", false)
	f.look()
	f.look()
	waiting := f.nextApplied()
	f.write("c", true)
	f.look()
	f.look()
	eventually(t, "the new state to be read", func() bool { return len(f.reloaded()) == 2 })
	assert.NoError(t, waiting.ctx.Err(), "nobody gives up for something that is not valid")
	f.write("d", false)
	f.look()
	f.look()
	newer := f.nextApplied()
	assert.Error(t, waiting.ctx.Err())
	assert.NotSame(t, waiting.c, newer.c)
	f.stop()
	require.NoError(t, <-f.ended)
}

// TestFollowTriesAgain checks that an incomplete apply is retried, and that newer files still
// cancel it.
func TestFollowTriesAgain(t *testing.T) {
	f := follow(t, noClusters)
	f.goOn <- tried{again: time.Minute}
	// the tickers of files and care, and this timer
	eventually(t, "the wait", func() bool { return f.clock.Waiters() > 2 })
	f.clock.Step(59 * time.Second)
	assert.Empty(t, f.applied)
	f.clock.Step(time.Second)
	again := f.nextApplied()
	assert.Same(t, f.first, again.c)
	assert.Equal(t, 1, again.attempt)
	f.goOn <- tried{again: time.Hour}

	f.write("b", false)
	f.look()
	f.look()
	newer := f.nextApplied()
	assert.Same(t, f.reloaded()[0], newer.c)
	assert.Equal(t, 0, newer.attempt)
	f.goOn <- tried{err: errors.New("held by others")}
	assert.EqualError(t, <-f.ended, "held by others")
}

func TestFollowRetry(t *testing.T) {
	assert.Equal(t, 15*time.Second, FollowRetry(0))
	assert.Equal(t, 30*time.Second, FollowRetry(1))
	assert.Equal(t, 4*time.Minute, FollowRetry(4))
	for _, attempt := range []int{5, 8, 100, 1 << 40} {
		assert.Equal(t, 5*time.Minute, FollowRetry(attempt))
	}
}

func TestFollowEndsWithALostLease(t *testing.T) {
	f := follow(t, noClusters)
	f.goOn <- tried{}
	f.first.role.die(&owner.LeaseLostError{Err: errors.New("held by somebody")})
	assert.ErrorContains(t, <-f.ended, "held by somebody")
}

// TestFollowHandsLeasesOver checks that leases pass from one converger to the next without being
// free in between.
func TestFollowHandsLeasesOver(t *testing.T) {
	needsServer(t)
	f := follow(t, func() map[string]*apply.Cluster { return map[string]*apply.Cluster{"test": testCluster(t)} })
	l := &leased{T: t, name: fmt.Sprintf("lease-%d", server.count.Add(1)), clock: f.clock}
	got, err := acquireLease(testContext(t), f.first.links.clusters["test"], l.name, "we", f.clock, func(err error) { f.first.role.die(err) }, sighting{}, nil)
	require.NoError(t, err)
	f.first.mu.Lock()
	f.first.role.leases = []*lease{got}
	f.first.mu.Unlock()

	f.write("b", false)
	f.look()
	f.look()
	next := f.nextApplied()
	assert.True(t, next.c.holds("test", l.name))
	assert.False(t, f.first.holds("test", l.name))
	assert.Equal(t, "we", *l.live().Spec.HolderIdentity)
	f.goOn <- tried{}
	before := l.live().Spec.RenewTime
	eventually(t, "a renewal by the new connections", func() bool {
		f.clock.Step(leaseRetry)
		return before.Before(l.live().Spec.RenewTime)
	})
	assert.Positive(t, next.c.links.clusters["test"].Requests()["update"])

	l.write("thief", f.clock.Now())
	eventually(t, "the end", func() bool {
		f.clock.Step(leaseRetry)
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
	assert.ErrorContains(t, err, "look at the files of nowhere")
}
