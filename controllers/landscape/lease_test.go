// SPDX-License-Identifier: Apache-2.0

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

// leaseTest is a lease of one test, with the clock of a process that uses it.
type leaseTest struct {
	*testing.T
	name  string
	clock *clocktesting.FakeClock
	lost  chan error
	// responses counts the responses about the lease to background attempts.
	responses atomic.Int64
}

func newLeaseTest(t *testing.T) *leaseTest {
	needsServer(t)
	return &leaseTest{T: t, name: fmt.Sprintf("lease-%d", server.count.Add(1)), clock: clocktesting.NewFakeClock(time.Now()), lost: make(chan error, 1)}
}

// acquire acquires the lease, and releases it at the end of the test.
func (l *leaseTest) acquire(c *apply.Cluster, holder string) (*heldLease, error) {
	got, err := acquireLease(testContext(l.T), c, l.name, holder, l.clock, func(err error) { l.lost <- err }, leaseObservation{}, nil)
	if got != nil {
		l.Cleanup(got.release)
	}
	return got, err
}

func (l *leaseTest) readLease() *coordinationv1.Lease {
	l.Helper()
	found, err := testClient(l.T).CoordinationV1().Leases(leasesNamespace).Get(testContext(l.T), l.name, metav1.GetOptions{})
	require.NoError(l, err)
	return found
}

// writeAs imitates another process.
func (l *leaseTest) writeAs(holder string, renewed time.Time) {
	l.Helper()
	leases := testClient(l.T).CoordinationV1().Leases(leasesNamespace)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To(int32(leaseDuration / time.Second))}
	found, err := leases.Get(testContext(l.T), l.name, metav1.GetOptions{})
	if err == nil {
		found.Spec = spec
		_, err = leases.Update(testContext(l.T), found, metav1.UpdateOptions{})
		require.NoError(l, err)
		return
	}
	require.NoError(l, (&heldLease{client: testClient(l.T), clock: l.clock}).ensureNamespace(testContext(l.T)))
	_, err = leases.Create(testContext(l.T), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(l, err)
}

// acquireOutcome of an attempt to acquire a lease.
type acquireOutcome struct {
	lease *heldLease
	err   error
}

// acquireInBackground acquires while the test continues; the channel receives the outcome.
func (l *leaseTest) acquireInBackground(holder string) chan acquireOutcome {
	return l.acquireInBackgroundAfter(holder, leaseObservation{}, nil)
}

func (l *leaseTest) acquireInBackgroundAfter(holder string, seen leaseObservation, waiting func(LeaseWait)) chan acquireOutcome {
	out := make(chan acquireOutcome, 1)
	c := testCluster(l.T, func(config *rest.Config) { config.Wrap(l.countResponses) })
	go func() {
		got, err := acquireLease(testContext(l.T), c, l.name, holder, l.clock, func(err error) { l.lost <- err }, seen, waiting)
		out <- acquireOutcome{got, err}
	}()
	return out
}

// countResponses counts the responses about the lease.
func (l *leaseTest) countResponses(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if strings.HasSuffix(r.URL.Path, "/leases/"+l.name) {
			l.responses.Add(1)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// waitForRead waits until a background attempt has read the lease again.
func (l *leaseTest) waitForRead(after int64) {
	l.Helper()
	eventually(l.T, "the attempt to look at the lease", func() bool { return l.responses.Load() > after })
}

// stepUntilOutcome steps the clock until the attempt ends, and returns its duration. After each
// step it waits for a read of the lease, because requests take real time.
func stepUntilOutcome(l *leaseTest, from chan acquireOutcome) (acquireOutcome, time.Duration) {
	l.Helper()
	began := l.clock.Now()
	for {
		before := l.responses.Load()
		l.clock.Step(leaseRetryInterval)
		over := false
		var got acquireOutcome
		eventually(l.T, "the attempt to look at the lease, or to end", func() bool {
			select {
			case got = <-from:
				over = true
			default:
			}
			return over || l.responses.Load() > before
		})
		if over {
			return got, l.clock.Since(began)
		}
	}
}

// stepUntilLost steps the clock until the lease is lost.
func stepUntilLost(l *leaseTest) (took time.Duration, lost error) {
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
			l.clock.Step(leaseRetryInterval)
		}
		<-time.After(50 * time.Millisecond) // requests take real time
	}
}

func TestFreeLeaseIsAcquiredAndReleased(t *testing.T) {
	l := newLeaseTest(t)
	got, err := l.acquire(testCluster(t), "one")
	require.NoError(t, err)
	live := l.readLease()
	assert.Equal(t, "one", *live.Spec.HolderIdentity)
	assert.Equal(t, int32(30), *live.Spec.LeaseDurationSeconds)
	assert.Equal(t, int32(0), *live.Spec.LeaseTransitions)
	acquired := live.Spec.AcquireTime

	judged := l.clock.Now().Add(time.Second).Truncate(time.Second)
	got.recordHealthCheck(judged)
	eventually(t, "the renewal to wait", l.clock.HasWaiters)
	l.clock.Step(leaseRenewInterval)
	eventually(t, "the renewal", func() bool {
		return l.readLease().Annotations[annotationHealthChecked] == judged.UTC().Format(time.RFC3339)
	})
	live = l.readLease()
	assert.True(t, live.Spec.RenewTime.Time.Equal(l.clock.Now().Truncate(time.Microsecond)), "%s", live.Spec.RenewTime)
	assert.True(t, live.Spec.AcquireTime.Equal(acquired), "still the same acquisition")

	got.release()
	assert.Nil(t, l.readLease().Spec.HolderIdentity)
	_, err = l.acquire(testCluster(t), "two")
	require.NoError(t, err, "at once")
	live = l.readLease()
	assert.Equal(t, "two", *live.Spec.HolderIdentity)
	assert.Equal(t, int32(1), *live.Spec.LeaseTransitions)
	assert.Empty(t, l.lost)
}

// TestLivingHolderIsReported checks that a holder that renews is reported, whatever its clock.
func TestLivingHolderIsReported(t *testing.T) {
	for name, skew := range map[string]time.Duration{"same clock": 0, "clock behind": -9 * time.Minute, "clock ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newLeaseTest(t)
			theirs := l.clock.Now().Add(skew)
			l.writeAs("somebody", theirs)
			attempt := l.acquireInBackground("we")
			l.waitForRead(0)
			for range 8 {
				before := l.responses.Load()
				l.clock.Step(leaseRetryInterval)
				l.waitForRead(before)
			}
			require.Empty(t, attempt, "a lease that is held is watched")
			l.writeAs("somebody", theirs.Add(leaseRenewInterval))
			got, _ := stepUntilOutcome(l, attempt)
			var held *LeaseHeldError
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
			l := newLeaseTest(t)
			l.writeAs("crashed", l.clock.Now().Add(skew))
			got, took := stepUntilOutcome(l, l.acquireInBackground("we"))
			require.NoError(t, got.err)
			t.Cleanup(got.lease.release)
			assert.GreaterOrEqual(t, took, leaseDuration)
			assert.Less(t, took, 2*leaseDuration)
			assert.Equal(t, "we", *l.readLease().Spec.HolderIdentity)
		})
	}
	t.Run("long ago", func(t *testing.T) {
		l := newLeaseTest(t)
		l.writeAs("crashed", l.clock.Now().Add(-leaseAbandonedAfter-time.Second))
		_, err := l.acquire(testCluster(t), "we")
		require.NoError(t, err, "at once")
	})
}

// TestLeaseWaitIsReported checks that waiting is reported once, with holder and duration.
func TestLeaseWaitIsReported(t *testing.T) {
	l := newLeaseTest(t)
	l.writeAs("crashed", l.clock.Now())
	var told []LeaseWait
	got, _ := stepUntilOutcome(l, l.acquireInBackgroundAfter("we", leaseObservation{}, func(w LeaseWait) { told = append(told, w) }))
	require.NoError(t, got.err)
	t.Cleanup(got.lease.release)
	require.Len(t, told, 1)
	assert.InDelta(t, (leaseDuration - leaseWaitNotice).Seconds(), told[0].Remaining.Seconds(), leaseRetryInterval.Seconds()+0.01, "a step may be late")
	assert.Regexp(t, "^cluster test: lease garden/"+l.name+" is held by crashed since .*: waiting up to (29|30)s more to see whether it is alive$", told[0].String())
}

// TestPermanentHolderIsReportedAtOnce checks that no one waits for an operator or gardenlet that
// renews; a silent one may have crashed.
func TestPermanentHolderIsReportedAtOnce(t *testing.T) {
	l := newLeaseTest(t)
	holder := "pergola-operator-7d4_pergola-operator_1_x2b4c"
	ask := func() error {
		_, err := acquireLease(testContext(t), testCluster(t), l.name, "we", l.clock, func(error) {}, leaseObservation{}, func(w LeaseWait) { t.Error("nobody waits:", w) })
		return err
	}
	for _, ago := range []time.Duration{0, leaseDuration - time.Second, -leaseRenewInterval} {
		l.writeAs(holder, l.clock.Now().Add(-ago))
		err := ask()
		require.ErrorContains(t, err, "cluster test: an operator applies Git to this cluster: pergola operator in pergola-operator-7d4 has held lease garden/"+l.name+" since ")
		require.ErrorContains(t, err, "pergola sync")
		assert.NotContains(t, err.Error(), "wait until it is done")
	}
	l.writeAs(holder, l.clock.Now().Add(-leaseDuration))
	got, took := stepUntilOutcome(l, l.acquireInBackgroundAfter("we", leaseObservation{}, func(LeaseWait) {}))
	require.NoError(t, got.err)
	t.Cleanup(got.lease.release)
	assert.GreaterOrEqual(t, took, leaseDuration, "it is watched")

	for holder, resident := range map[string]bool{"host_pergola-apply_12_abcde": false, "host_pergola-gardenlet_12_abcde": true, "gardenlet-5f7_8a1": true, "gardener-operator-5f7_8a1": true, "somebody": false} {
		assert.Equal(t, resident, (&LeaseHeldError{Holder: holder}).isPermanent(), holder)
	}
	assert.ErrorContains(t, &LeaseHeldError{Holder: "gardenlet-5f7_8a1", Lease: gardenletLease}, "a gardenlet reconciles this seed")
}

// TestEarlierSightingShortensWait checks that waits overlap: an earlier sighting
// counts.
func TestEarlierSightingShortensWait(t *testing.T) {
	l := newLeaseTest(t)
	l.writeAs("crashed", l.clock.Now())
	c := testCluster(t)
	seen, err := observeLease(testContext(t), c, l.name, "we", l.clock)
	require.NoError(t, err)
	l.clock.Step(leaseDuration)
	got, err := acquireLease(testContext(t), c, l.name, "we", l.clock, func(error) {}, seen, nil)
	require.NoError(t, err, "at once")
	t.Cleanup(got.release)

	// A holder that has renewed since then is alive.
	other := newLeaseTest(t)
	other.writeAs("living", other.clock.Now())
	seen, err = observeLease(testContext(t), c, other.name, "we", other.clock)
	require.NoError(t, err)
	other.writeAs("living", other.clock.Now().Add(leaseRenewInterval))
	other.clock.Step(leaseDuration)
	_, err = acquireLease(testContext(t), c, other.name, "we", other.clock, func(error) {}, seen, nil)
	require.ErrorAs(t, err, new(*LeaseHeldError))
}

// TestAStolenLeaseIsLost checks that a process stops when its lease has another holder, and does
// not take it back.
func TestAStolenLeaseIsLost(t *testing.T) {
	l := newLeaseTest(t)
	got, err := l.acquire(testCluster(t), "we")
	require.NoError(t, err)
	l.writeAs("thief", l.clock.Now().Add(-time.Hour)) // as old as it can look
	_, lost := stepUntilLost(l)
	var why *owner.LeaseLostError
	require.ErrorAs(t, lost, &why)
	assert.ErrorContains(t, lost, "the lease was lost: cluster test: lease garden/"+l.name+" is held by thief")
	got.release()
	assert.Equal(t, "thief", *l.readLease().Spec.HolderIdentity, "what is not ours is not given back")
}

// TestUnrenewableLeaseIsLostInTime checks that a holder that cannot renew stops before
// another process may take over.
func TestUnrenewableLeaseIsLostInTime(t *testing.T) {
	var down atomic.Bool
	l := newLeaseTest(t)
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
	took, lost := stepUntilLost(l)
	require.ErrorAs(t, lost, new(*owner.LeaseLostError))
	assert.ErrorContains(t, lost, "could not be renewed for 20s")
	assert.ErrorContains(t, lost, "no route to host")
	assert.GreaterOrEqual(t, took, leaseRenewDeadline)
	assert.Less(t, took, leaseDuration)
}

// TestOneOfManyGetsTheLease checks that of several concurrent attempts one acquires the lease.
func TestOneOfManyGetsTheLease(t *testing.T) {
	l := newLeaseTest(t)
	const many = 8
	clusters := make([]*heldLease, many)
	for i := range clusters {
		clusters[i] = &heldLease{cluster: "test", name: l.name, holder: fmt.Sprint("holder-", i), clock: l.clock}
		require.NoError(t, clusters[i].useConnection(testCluster(t), nil))
	}
	results := make(chan error, many)
	for _, c := range clusters {
		go func() { results <- c.acquireOrRenew(testContext(t), nil) }()
	}
	got := 0
	for range many {
		err := <-results
		if err == nil {
			got++
			continue
		}
		require.ErrorAs(t, err, new(*LeaseHeldError))
	}
	assert.Equal(t, 1, got)
}
