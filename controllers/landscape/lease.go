// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// Leases of the roles, with upstream's names: only the holder reconciles.
const (
	leasesNamespace = "garden"
	operatorLease   = "gardener-operator-leader-election"
	gardenletLease  = "gardenlet-leader-election"
)

// annotationHealthChecked on a Lease is the time of the last complete health check by its holder.
// The times of conditions do not show it, because unchanged conditions are not written.
const annotationHealthChecked = "landscape.pergola.dev/judged"

// A holder that cannot renew stops before another process may take over. Upstream's leader election
// uses 15 seconds and 10 seconds. An API server with few CPUs may not answer for that long while it
// adds the CRDs of a Garden. So these are twice as long.
const (
	leaseDuration      = 30 * time.Second
	leaseRenewDeadline = 20 * time.Second
	leaseRenewInterval = 5 * time.Second
	// leaseRetryInterval is the interval for checking the holder of a lease, and for repeating a
	// failed renewal.
	leaseRetryInterval = 500 * time.Millisecond
	// leaseAbandonedAfter exceeds any clock difference: a holder with an older renewal has ended.
	leaseAbandonedAfter = 10 * time.Minute
)

// LeaseHeldError names the process that holds the lease.
type LeaseHeldError struct {
	Cluster, Lease, Holder string
	HeldSince, Renewed     time.Time
	duration               time.Duration
}

func (e *LeaseHeldError) Error() string {
	if e.isPermanent() {
		return e.permanentHolderText()
	}
	return fmt.Sprintf("cluster %s: lease %s/%s is held by %s (renewed %s): wait until it is done, or stop it", e.Cluster, leasesNamespace, e.Lease, HolderText(e.Holder), e.Renewed.UTC().Format(time.RFC3339))
}

// permanentHolderPattern matches the identities of processes that hold a lease until they end:
// Pergola's and upstream's operator and gardenlet (host names are pod names).
var permanentHolderPattern = regexp.MustCompile(`_pergola-(operator|gardenlet)_|^(gardener-operator|gardenlet)-`)

func (e *LeaseHeldError) isPermanent() bool { return permanentHolderPattern.MatchString(e.Holder) }

// permanentHolderText explains what to do while such a process runs. Suspending the Landscape does
// not help: its operator keeps the lease.
func (e *LeaseHeldError) permanentHolderText() string {
	where := fmt.Sprintf("cluster %s: %%s: %s has held lease %s/%s since %s (renewed %s): %%s; pergola diff --live and apply --dry-run work meanwhile",
		e.Cluster, HolderText(e.Holder), leasesNamespace, e.Lease, e.HeldSince.UTC().Format(time.RFC3339), e.Renewed.UTC().Format(time.RFC3339))
	if e.Lease == gardenletLease {
		return fmt.Sprintf(where, "a gardenlet reconciles this seed", "the operator sends pushed changes to it; to apply from here, stop it first")
	}
	return fmt.Sprintf(where, "an operator applies Git to this cluster", "push the change, or apply a pushed change now with pergola sync LANDSCAPE; to apply from here, stop it first")
}

// isRenewing reports whether an operator or gardenlet has renewed within its lease duration, by our
// clock. It is also true right after a crash; then the caller retries.
func (e *LeaseHeldError) isRenewing(now time.Time) bool {
	return e.isPermanent() && now.Sub(e.Renewed).Abs() < e.duration
}

func (e *LeaseHeldError) isSameRenewal(o *LeaseHeldError) bool {
	return e != nil && o != nil && e.Holder == o.Holder && e.Renewed.Equal(o.Renewed)
}

// heldLease is a lease that this process holds.
type heldLease struct {
	cluster, name, holder string
	clock                 clock.WithTicker

	mu              sync.Mutex
	client          kubernetes.Interface
	onLost          func(error)
	lastHealthCheck time.Time
	// renewed is the send time of the last successful renewal; it is zero once the lease is lost.
	renewed time.Time

	stop context.CancelFunc
	done sync.WaitGroup
}

// leaseWaitNotice is the delay before waiting for a lease is reported to a person.
const leaseWaitNotice = time.Second

// LeaseWait describes the wait for a lease until it is clear whether its holder is alive.
type LeaseWait struct {
	// HeldBy describes the lease and its holder.
	HeldBy *LeaseHeldError
	// Remaining is the remaining wait if the holder does not renew.
	Remaining time.Duration
}

// leaseObservation is a lease of another process, and since when its content is unchanged.
type leaseObservation struct {
	held  *LeaseHeldError
	since time.Time
}

// String returns one line for people.
func (w LeaseWait) String() string {
	return fmt.Sprintf("cluster %s: lease %s/%s is held by %s since %s (renewed %s): waiting up to %s more to see whether it is alive",
		w.HeldBy.Cluster, leasesNamespace, w.HeldBy.Lease, w.HeldBy.Holder, w.HeldBy.HeldSince.UTC().Format(time.RFC3339), w.HeldBy.Renewed.UTC().Format(time.RFC3339), w.Remaining.Round(time.Second))
}

// acquireLease acquires a free lease. It watches a held one until it is clear whether the holder is
// alive. A renewal proves it, and a crashed holder blocks only for the lease duration. A renewal is
// compared with the previous one and not with our time, because clocks differ. A non-nil waiting
// means that a person waits. Then an operator or gardenlet that seems alive is an error at once,
// because it does not end.
//
// seen is an earlier sighting of the lease, so that waits for several leases overlap; waiting is
// called once after leaseWaitNotice.
func acquireLease(ctx context.Context, c *apply.Cluster, name, holder string, clk clock.WithTicker, lost func(error), seen leaseObservation, waiting func(LeaseWait)) (*heldLease, error) {
	l := &heldLease{cluster: c.Name(), name: name, holder: holder, clock: clk}
	if err := l.useConnection(c, lost); err != nil {
		return nil, err
	}
	tick := clk.NewTicker(leaseRetryInterval)
	defer tick.Stop()
	first, since, began := seen.held, seen.since, clk.Now()
	var dead *LeaseHeldError
	told := waiting == nil
	for {
		sent := clk.Now()
		err := l.acquireOrRenew(ctx, func(held *LeaseHeldError) bool {
			return held.isSameRenewal(dead) || clk.Since(held.Renewed) > leaseAbandonedAfter
		})
		if err == nil {
			l.recordRenewal(sent)
			l.startRenewal()
			return l, nil
		}
		var held *LeaseHeldError
		switch {
		case !errors.As(err, &held):
			return nil, c.Explain(apply.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: leasesNamespace, Name: name}, "acquire", err)
		case waiting != nil && held.isRenewing(clk.Now()):
			return nil, err
		case first == nil:
			first, since = held, clk.Now()
		case !held.isSameRenewal(first):
			return nil, err
		case clk.Since(since) >= held.duration:
			dead = held
			continue
		case !told && clk.Since(began) >= leaseWaitNotice:
			told = true
			waiting(LeaseWait{HeldBy: held, Remaining: held.duration - clk.Since(since)})
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C():
		}
	}
}

// observeLease returns who else holds a lease; the sighting is empty if no one does.
func observeLease(ctx context.Context, c *apply.Cluster, name, holder string, clk clock.WithTicker) (leaseObservation, error) {
	l := &heldLease{cluster: c.Name(), name: name, holder: holder, clock: clk}
	if err := l.useConnection(c, nil); err != nil {
		return leaseObservation{}, err
	}
	current, err := l.client.CoordinationV1().Leases(leasesNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return leaseObservation{}, err
	}
	return leaseObservation{held: l.otherHolder(current), since: clk.Now()}, nil
}

// useConnection makes the lease use the connection and the callback of another converger.
func (l *heldLease) useConnection(c *apply.Cluster, lost func(error)) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client, l.onLost = client, lost
	return nil
}

func (l *heldLease) currentClient() kubernetes.Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

// acquireOrRenew acquires or renews the lease. It takes the lease of another holder only if mayTake
// allows it, else it returns a LeaseHeldError.
func (l *heldLease) acquireOrRenew(ctx context.Context, mayTake func(*LeaseHeldError) bool) error {
	for {
		err := l.tryAcquireOrRenew(ctx, mayTake)
		// After a conflict, read the lease again.
		if ctx.Err() != nil || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

func (l *heldLease) tryAcquireOrRenew(ctx context.Context, mayTake func(*LeaseHeldError) bool) error {
	leases := l.currentClient().CoordinationV1().Leases(leasesNamespace)
	current, err := leases.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := l.ensureNamespace(ctx); err != nil {
			return err
		}
		created := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}}
		l.setHolder(created)
		_, err = leases.Create(ctx, created, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if held := l.otherHolder(current); held != nil && (mayTake == nil || !mayTake(held)) {
		return held
	}
	l.setHolder(current)
	_, err = leases.Update(ctx, current, metav1.UpdateOptions{})
	return err
}

// otherHolder returns who else holds the lease, or nil if no one does.
func (l *heldLease) otherHolder(current *coordinationv1.Lease) *LeaseHeldError {
	holder := ptr.Deref(current.Spec.HolderIdentity, "")
	if holder == "" || holder == l.holder {
		return nil
	}
	return &LeaseHeldError{
		Cluster: l.cluster, Lease: l.name, Holder: holder,
		HeldSince: ptr.Deref(current.Spec.AcquireTime, metav1.MicroTime{}).Time, Renewed: ptr.Deref(current.Spec.RenewTime, metav1.MicroTime{}).Time,
		duration: time.Duration(ptr.Deref(current.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
}

// setHolder sets this process as the holder from now on.
func (l *heldLease) setHolder(current *coordinationv1.Lease) {
	now := metav1.NewMicroTime(l.clock.Now())
	spec := &current.Spec
	if ptr.Deref(spec.HolderIdentity, "") != l.holder {
		spec.AcquireTime = &now
		spec.LeaseTransitions = ptr.To(ptr.Deref(spec.LeaseTransitions, -1) + 1)
	}
	spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &l.holder, ptr.To(int32(leaseDuration/time.Second)), &now
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lastHealthCheck.IsZero() {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, annotationHealthChecked, l.lastHealthCheck.UTC().Format(time.RFC3339))
	}
}

// recordHealthCheck stores a time that the next renewal writes.
func (l *heldLease) recordHealthCheck(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHealthCheck = at
}

func (l *heldLease) healthCheckedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastHealthCheck
}

func (l *heldLease) ensureNamespace(ctx context.Context) error {
	_, err := l.currentClient().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leasesNamespace}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// startRenewal renews the lease until release, and reports its loss: another process may reconcile
// then.
func (l *heldLease) startRenewal() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.done.Go(func() {
		renewed, wait := l.clock.Now(), leaseRenewInterval
		for {
			timer := l.clock.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			started := l.clock.Now()
			attempt, cancel := context.WithTimeout(ctx, max(leaseRenewDeadline-started.Sub(renewed), leaseRetryInterval))
			err := l.acquireOrRenew(attempt, nil)
			cancel()
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				renewed, wait = started, leaseRenewInterval
				l.recordRenewal(started)
			case errors.As(err, new(*LeaseHeldError)):
				l.reportLost(err)
				return
			case l.clock.Since(renewed) >= leaseRenewDeadline:
				l.reportLost(fmt.Errorf("cluster %s: lease %s/%s could not be renewed for %s: %w", l.cluster, leasesNamespace, l.name, leaseRenewDeadline, err))
				return
			default:
				wait = leaseRetryInterval
			}
		}
	})
}

func (l *heldLease) recordRenewal(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = at
}

// isExclusive reports whether no other process can hold the lease. A process that was paused may
// not know yet that it has lost it.
func (l *heldLease) isExclusive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.clock.Since(l.renewed) < leaseDuration
}

func (l *heldLease) reportLost(err error) {
	l.mu.Lock()
	lost := l.onLost
	l.renewed = time.Time{}
	l.mu.Unlock()
	lost(&owner.LeaseLostError{Err: err})
}

// release releases the lease, so that the next holder need not wait.
func (l *heldLease) release() {
	l.stop()
	l.done.Wait()
	l.mu.Lock()
	l.renewed = time.Time{} // the next holder may work from now on
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	leases := l.currentClient().CoordinationV1().Leases(leasesNamespace)
	current, err := leases.Get(ctx, l.name, metav1.GetOptions{})
	if err != nil || ptr.Deref(current.Spec.HolderIdentity, "") != l.holder {
		return
	}
	l.setHolder(current)
	current.Spec.HolderIdentity = nil
	// An error is harmless, because the lease expires.
	_, _ = leases.Update(ctx, current, metav1.UpdateOptions{})
}
