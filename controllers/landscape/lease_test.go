package landscape

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// leased is a lease of one test, with the clock of a process that uses it.
type leased struct {
	*testing.T
	name  string
	clock *clocktesting.FakeClock
	lost  chan error
	// answers counts the responses about the lease to background attempts.
	answers atomic.Int64
}

func newLeased(t *testing.T) *leased {
	needsServer(t)
	return &leased{T: t, name: fmt.Sprintf("lease-%d", server.count.Add(1)), clock: clocktesting.NewFakeClock(time.Now()), lost: make(chan error, 1)}
}

// acquire acquires the lease, and releases it at the end of the test.
func (l *leased) acquire(c *apply.Cluster, holder string) (*lease, error) {
	got, err := acquireLease(testContext(l.T), c, l.name, holder, l.clock, func(err error) { l.lost <- err }, sighting{}, nil)
	if got != nil {
		l.Cleanup(got.release)
	}
	return got, err
}

func (l *leased) live() *coordinationv1.Lease {
	l.Helper()
	found, err := testClient(l.T).CoordinationV1().Leases(leaseNamespace).Get(testContext(l.T), l.name, metav1.GetOptions{})
	require.NoError(l, err)
	return found
}

// write imitates another process.
func (l *leased) write(holder string, renewed time.Time) {
	l.Helper()
	leases := testClient(l.T).CoordinationV1().Leases(leaseNamespace)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To(int32(leaseDuration / time.Second))}
	found, err := leases.Get(testContext(l.T), l.name, metav1.GetOptions{})
	if err == nil {
		found.Spec = spec
		_, err = leases.Update(testContext(l.T), found, metav1.UpdateOptions{})
		require.NoError(l, err)
		return
	}
	require.NoError(l, (&lease{client: testClient(l.T), clock: l.clock}).ensureNamespace(testContext(l.T)))
	_, err = leases.Create(testContext(l.T), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(l, err)
}

// outcome of an attempt to acquire a lease.
type outcome struct {
	lease *lease
	err   error
}

// inBackground acquires while the test continues; the channel receives the outcome.
func (l *leased) inBackground(holder string) chan outcome {
	return l.inBackgroundAfter(holder, sighting{}, nil)
}

func (l *leased) inBackgroundAfter(holder string, seen sighting, waiting func(Waiting)) chan outcome {
	out := make(chan outcome, 1)
	c := testCluster(l.T, func(config *rest.Config) { config.Wrap(l.counted) })
	go func() {
		got, err := acquireLease(testContext(l.T), c, l.name, holder, l.clock, func(err error) { l.lost <- err }, seen, waiting)
		out <- outcome{got, err}
	}()
	return out
}

// counted counts the responses about the lease.
func (l *leased) counted(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if strings.HasSuffix(r.URL.Path, "/leases/"+l.name) {
			l.answers.Add(1)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// looked waits until a background attempt has read the lease again.
func (l *leased) looked(after int64) {
	l.Helper()
	eventually(l.T, "the attempt to look at the lease", func() bool { return l.answers.Load() > after })
}

// stepUntil steps the clock until the attempt ends, and returns its duration. After each step it
// waits for a read of the lease, because requests take real time.
func stepUntil(l *leased, from chan outcome) (outcome, time.Duration) {
	l.Helper()
	began := l.clock.Now()
	for {
		before := l.answers.Load()
		l.clock.Step(leaseRetry)
		over := false
		var got outcome
		eventually(l.T, "the attempt to look at the lease, or to end", func() bool {
			select {
			case got = <-from:
				over = true
			default:
			}
			return over || l.answers.Load() > before
		})
		if over {
			return got, l.clock.Since(began)
		}
	}
}

// untilLost steps the clock until the lease is lost.
func untilLost(l *leased) (took time.Duration, lost error) {
	l.Helper()
	began := l.clock.Now()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case err := <-l.lost:
			return l.clock.Since(began), err
		case <-deadline:
			require.FailNow(l, "nothing happened")
		default:
		}
		if l.clock.HasWaiters() {
			l.clock.Step(leaseRetry)
		}
		<-time.After(50 * time.Millisecond) // requests take real time
	}
}

func TestAFreeLeaseIsTakenAndGivenBack(t *testing.T) {
	l := newLeased(t)
	got, err := l.acquire(testCluster(t), "one")
	require.NoError(t, err)
	live := l.live()
	assert.Equal(t, "one", *live.Spec.HolderIdentity)
	assert.Equal(t, int32(30), *live.Spec.LeaseDurationSeconds)
	assert.Equal(t, int32(0), *live.Spec.LeaseTransitions)
	acquired := live.Spec.AcquireTime

	judged := l.clock.Now().Add(time.Second).Truncate(time.Second)
	got.noteJudged(judged)
	eventually(t, "the renewal to wait", l.clock.HasWaiters)
	l.clock.Step(leaseRenew)
	eventually(t, "the renewal", func() bool { return l.live().Annotations[annotationJudged] == judged.UTC().Format(time.RFC3339) })
	live = l.live()
	assert.True(t, live.Spec.RenewTime.Time.Equal(l.clock.Now().Truncate(time.Microsecond)), "%s", live.Spec.RenewTime)
	assert.True(t, live.Spec.AcquireTime.Equal(acquired), "still the same acquisition")

	got.release()
	assert.Nil(t, l.live().Spec.HolderIdentity)
	_, err = l.acquire(testCluster(t), "two")
	require.NoError(t, err, "at once")
	live = l.live()
	assert.Equal(t, "two", *live.Spec.HolderIdentity)
	assert.Equal(t, int32(1), *live.Spec.LeaseTransitions)
	assert.Empty(t, l.lost)
}

// TestALivingHolderIsNamed checks that a holder that renews is reported, whatever its clock.
func TestALivingHolderIsNamed(t *testing.T) {
	for name, skew := range map[string]time.Duration{"same clock": 0, "clock behind": -9 * time.Minute, "clock ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newLeased(t)
			theirs := l.clock.Now().Add(skew)
			l.write("somebody", theirs)
			attempt := l.inBackground("we")
			l.looked(0)
			for range 8 {
				before := l.answers.Load()
				l.clock.Step(leaseRetry)
				l.looked(before)
			}
			require.Empty(t, attempt, "a lease that is held is watched")
			l.write("somebody", theirs.Add(leaseRenew))
			got, _ := stepUntil(l, attempt)
			var held *HeldError
			require.ErrorAs(t, got.err, &held)
			assert.Equal(t, "somebody", held.Holder)
			assert.ErrorContains(t, got.err, "lease garden/"+l.name+" is held by somebody")
			assert.ErrorContains(t, got.err, "wait until it is done, or stop it")
		})
	}
}

// TestACrashedHolderBlocksForTheDuration checks that a crashed holder blocks for the lease duration
// by our clock, because its own times may be off.
func TestACrashedHolderBlocksForTheDuration(t *testing.T) {
	for name, skew := range map[string]time.Duration{"same clock": 0, "clock behind": -9 * time.Minute, "clock ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newLeased(t)
			l.write("crashed", l.clock.Now().Add(skew))
			got, took := stepUntil(l, l.inBackground("we"))
			require.NoError(t, got.err)
			t.Cleanup(got.lease.release)
			assert.GreaterOrEqual(t, took, leaseDuration)
			assert.Less(t, took, 2*leaseDuration)
			assert.Equal(t, "we", *l.live().Spec.HolderIdentity)
		})
	}
	t.Run("long ago", func(t *testing.T) {
		l := newLeased(t)
		l.write("crashed", l.clock.Now().Add(-leaseAbandoned-time.Second))
		_, err := l.acquire(testCluster(t), "we")
		require.NoError(t, err, "at once")
	})
}

// TestWaitingForALeaseIsTold checks that waiting is reported once, with holder and duration.
func TestWaitingForALeaseIsTold(t *testing.T) {
	l := newLeased(t)
	l.write("crashed", l.clock.Now())
	var told []Waiting
	got, _ := stepUntil(l, l.inBackgroundAfter("we", sighting{}, func(w Waiting) { told = append(told, w) }))
	require.NoError(t, got.err)
	t.Cleanup(got.lease.release)
	require.Len(t, told, 1)
	assert.InDelta(t, (leaseDuration - leaseNotice).Seconds(), told[0].For.Seconds(), leaseRetry.Seconds()+0.01, "a step may be late")
	assert.Regexp(t, "^cluster test: lease garden/"+l.name+" is held by crashed since .*: waiting up to (29|30)s more to see whether it is alive$", told[0].String())
}

// TestAResidentHolderIsNamedAtOnce checks that nobody waits for an operator or gardenlet that
// renews; a silent one may have crashed.
func TestAResidentHolderIsNamedAtOnce(t *testing.T) {
	l := newLeased(t)
	holder := "pergola-operator-7d4_pergola-operator_1_x2b4c"
	ask := func() error {
		_, err := acquireLease(testContext(t), testCluster(t), l.name, "we", l.clock, func(error) {}, sighting{}, func(w Waiting) { t.Error("nobody waits:", w) })
		return err
	}
	for _, ago := range []time.Duration{0, leaseDuration - time.Second, -leaseRenew} {
		l.write(holder, l.clock.Now().Add(-ago))
		err := ask()
		require.ErrorContains(t, err, "cluster test: an operator applies what is in Git here: pergola operator in pergola-operator-7d4 has had lease garden/"+l.name+" since ")
		require.ErrorContains(t, err, "pergola sync")
		assert.NotContains(t, err.Error(), "wait until it is done")
	}
	l.write(holder, l.clock.Now().Add(-leaseDuration))
	got, took := stepUntil(l, l.inBackgroundAfter("we", sighting{}, func(Waiting) {}))
	require.NoError(t, got.err)
	t.Cleanup(got.lease.release)
	assert.GreaterOrEqual(t, took, leaseDuration, "it is watched")

	for holder, resident := range map[string]bool{"host_pergola-apply_12_abcde": false, "host_pergola-gardenlet_12_abcde": true, "gardenlet-5f7_8a1": true, "gardener-operator-5f7_8a1": true, "somebody": false} {
		assert.Equal(t, resident, (&HeldError{Holder: holder}).resident(), holder)
	}
	assert.ErrorContains(t, &HeldError{Holder: "gardenlet-5f7_8a1", Lease: leaseGardenlet}, "a gardenlet looks after this seed")
}

// TestALeaseThatWasSeenEarlierIsNotWatchedAgain checks that waits overlap: an earlier sighting
// counts.
func TestALeaseThatWasSeenEarlierIsNotWatchedAgain(t *testing.T) {
	l := newLeased(t)
	l.write("crashed", l.clock.Now())
	c := testCluster(t)
	seen, err := sight(testContext(t), c, l.name, "we", l.clock)
	require.NoError(t, err)
	l.clock.Step(leaseDuration)
	got, err := acquireLease(testContext(t), c, l.name, "we", l.clock, func(error) {}, seen, nil)
	require.NoError(t, err, "at once")
	t.Cleanup(got.release)

	// A holder that has renewed since then is alive.
	other := newLeased(t)
	other.write("living", other.clock.Now())
	seen, err = sight(testContext(t), c, other.name, "we", other.clock)
	require.NoError(t, err)
	other.write("living", other.clock.Now().Add(leaseRenew))
	other.clock.Step(leaseDuration)
	_, err = acquireLease(testContext(t), c, other.name, "we", other.clock, func(error) {}, seen, nil)
	require.ErrorAs(t, err, new(*HeldError))
}

// TestAStolenLeaseIsLost checks that a process stops when its lease has another holder, and does
// not take it back.
func TestAStolenLeaseIsLost(t *testing.T) {
	l := newLeased(t)
	got, err := l.acquire(testCluster(t), "we")
	require.NoError(t, err)
	l.write("thief", l.clock.Now().Add(-time.Hour)) // as old as it can look
	_, lost := untilLost(l)
	var why *owner.LeaseLostError
	require.ErrorAs(t, lost, &why)
	assert.ErrorContains(t, lost, "the lease was lost: cluster test: lease garden/"+l.name+" is held by thief")
	got.release()
	assert.Equal(t, "thief", *l.live().Spec.HolderIdentity, "what is not ours is not given back")
}

// TestALeaseThatCannotBeRenewedIsLostInTime checks that a holder that cannot renew stops before
// another process may take over.
func TestALeaseThatCannotBeRenewedIsLostInTime(t *testing.T) {
	var down atomic.Bool
	l := newLeased(t)
	_, err := l.acquire(testCluster(t, func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if down.Load() {
					return nil, errors.New("no route to host")
				}
				return next.RoundTrip(r)
			})
		})
	}), "we")
	require.NoError(t, err)
	down.Store(true)
	took, lost := untilLost(l)
	require.ErrorAs(t, lost, new(*owner.LeaseLostError))
	assert.ErrorContains(t, lost, "could not be renewed for 20s")
	assert.ErrorContains(t, lost, "no route to host")
	assert.GreaterOrEqual(t, took, leaseDeadline)
	assert.Less(t, took, leaseDuration)
}

// TestOneOfManyGetsTheLease checks that of several concurrent attempts one acquires the lease.
func TestOneOfManyGetsTheLease(t *testing.T) {
	l := newLeased(t)
	const many = 8
	clusters := make([]*lease, many)
	for i := range clusters {
		clusters[i] = &lease{cluster: "test", name: l.name, holder: fmt.Sprint("holder-", i), clock: l.clock}
		require.NoError(t, clusters[i].adopt(testCluster(t), nil))
	}
	results := make(chan error, many)
	for _, c := range clusters {
		go func() { results <- c.write(testContext(t), nil) }()
	}
	got := 0
	for range many {
		err := <-results
		if err == nil {
			got++
			continue
		}
		require.ErrorAs(t, err, new(*HeldError))
	}
	assert.Equal(t, 1, got)
}
