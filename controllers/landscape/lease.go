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
	leaseNamespace = "garden"
	leaseOperator  = "gardener-operator-leader-election"
	leaseGardenlet = "gardenlet-leader-election"
)

// annotationJudged on a Lease is the time of the last complete health check by its holder. The
// times of conditions do not show it, because unchanged conditions are not written.
const annotationJudged = "landscape.pergola.dev/judged"

// A holder that cannot renew stops before another process may take over. Upstream's leader election
// uses 15 seconds and 10 seconds. An API server with few CPUs may not answer for that long while it
// adds the CRDs of a Garden. So these are twice as long.
const (
	leaseDuration = 30 * time.Second
	leaseDeadline = 20 * time.Second
	leaseRenew    = 5 * time.Second
	// leaseRetry is the interval for checking the holder of a lease, and for repeating a failed
	// renewal.
	leaseRetry = 500 * time.Millisecond
	// leaseAbandoned exceeds any clock difference: a holder with an older renewal has ended.
	leaseAbandoned = 10 * time.Minute
)

// HeldError names the process that holds the lease.
type HeldError struct {
	Cluster, Lease, Holder string
	Since, Renewed         time.Time
	duration               time.Duration
}

func (e *HeldError) Error() string {
	if e.resident() {
		return e.beside()
	}
	return fmt.Sprintf("cluster %s: lease %s/%s is held by %s (renewed %s): wait until it is done, or stop it", e.Cluster, leaseNamespace, e.Lease, HolderText(e.Holder), e.Renewed.UTC().Format(time.RFC3339))
}

// residents matches the identities of processes that hold a lease until they end: Pergola's and
// upstream's operator and gardenlet (host names are pod names).
var residents = regexp.MustCompile(`_pergola-(operator|gardenlet)_|^(gardener-operator|gardenlet)-`)

func (e *HeldError) resident() bool { return residents.MatchString(e.Holder) }

// beside explains what to do while such a process runs. Suspending the Landscape does not help: its
// operator keeps the lease.
func (e *HeldError) beside() string {
	where := fmt.Sprintf("cluster %s: %%s: %s has had lease %s/%s since %s (renewed %s): %%s; pergola diff --live and apply --dry-run work beside it",
		e.Cluster, HolderText(e.Holder), leaseNamespace, e.Lease, e.Since.UTC().Format(time.RFC3339), e.Renewed.UTC().Format(time.RFC3339))
	if e.Lease == leaseGardenlet {
		return fmt.Sprintf(where, "a gardenlet looks after this seed", "what is pushed reaches it by the operator; to apply from here, stop it first")
	}
	return fmt.Sprintf(where, "an operator applies what is in Git here", "push the change, or have what was pushed applied now by pergola sync LANDSCAPE; to apply from here, stop it first")
}

// sounds reports whether an operator or gardenlet has renewed within its lease duration, by our
// clock. It is also true right after a crash; then the caller retries.
func (e *HeldError) sounds(now time.Time) bool {
	return e.resident() && now.Sub(e.Renewed).Abs() < e.duration
}

func (e *HeldError) same(o *HeldError) bool {
	return e != nil && o != nil && e.Holder == o.Holder && e.Renewed.Equal(o.Renewed)
}

// lease is a lease that this process holds.
type lease struct {
	cluster, name, holder string
	clock                 clock.WithTicker

	mu     sync.Mutex
	client kubernetes.Interface
	lost   func(error)
	judged time.Time
	// renewed is the send time of the last successful renewal; zero once the lease is lost.
	renewed time.Time

	stop context.CancelFunc
	done sync.WaitGroup
}

// leaseNotice is the delay before waiting for a lease is reported to a person.
const leaseNotice = time.Second

// Waiting describes the wait for a lease until it is clear whether its holder is alive.
type Waiting struct {
	// Held describes the lease and its holder.
	Held *HeldError
	// For is the remaining wait if the holder does not renew.
	For time.Duration
}

// sighting is a lease of another process, and since when its content is unchanged.
type sighting struct {
	held  *HeldError
	since time.Time
}

// String returns one line for people.
func (w Waiting) String() string {
	return fmt.Sprintf("cluster %s: lease %s/%s is held by %s since %s (renewed %s): waiting up to %s more to see whether it is alive",
		w.Held.Cluster, leaseNamespace, w.Held.Lease, w.Held.Holder, w.Held.Since.UTC().Format(time.RFC3339), w.Held.Renewed.UTC().Format(time.RFC3339), w.For.Round(time.Second))
}

// acquireLease acquires a free lease. It watches a held one until it is clear whether the holder is
// alive. A renewal proves it, and a crashed holder blocks only for the lease duration. A renewal is
// compared with the previous one and not with our time, because clocks differ. A non-nil waiting
// means that a person waits. Then an operator or gardenlet that seems alive is an error at once,
// because it does not end.
//
// seen is an earlier sighting of the lease, so that waits for several leases overlap; waiting is
// called once after leaseNotice.
func acquireLease(ctx context.Context, c *apply.Cluster, name, holder string, clk clock.WithTicker, lost func(error), seen sighting, waiting func(Waiting)) (*lease, error) {
	l := &lease{cluster: c.Name(), name: name, holder: holder, clock: clk}
	if err := l.adopt(c, lost); err != nil {
		return nil, err
	}
	tick := clk.NewTicker(leaseRetry)
	defer tick.Stop()
	first, since, began := seen.held, seen.since, clk.Now()
	var dead *HeldError
	told := waiting == nil
	for {
		sent := clk.Now()
		err := l.write(ctx, func(held *HeldError) bool { return held.same(dead) || clk.Since(held.Renewed) > leaseAbandoned })
		if err == nil {
			l.noteRenewed(sent)
			l.keep()
			return l, nil
		}
		var held *HeldError
		switch {
		case !errors.As(err, &held):
			return nil, c.Explain(apply.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: leaseNamespace, Name: name}, "acquire", err)
		case waiting != nil && held.sounds(clk.Now()):
			return nil, err
		case first == nil:
			first, since = held, clk.Now()
		case !held.same(first):
			return nil, err
		case clk.Since(since) >= held.duration:
			dead = held
			continue
		case !told && clk.Since(began) >= leaseNotice:
			told = true
			waiting(Waiting{Held: held, For: held.duration - clk.Since(since)})
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C():
		}
	}
}

// sight returns who else holds a lease; the sighting is empty if nobody does.
func sight(ctx context.Context, c *apply.Cluster, name, holder string, clk clock.WithTicker) (sighting, error) {
	l := &lease{cluster: c.Name(), name: name, holder: holder, clock: clk}
	if err := l.adopt(c, nil); err != nil {
		return sighting{}, err
	}
	current, err := l.client.CoordinationV1().Leases(leaseNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return sighting{}, err
	}
	return sighting{held: l.heldBy(current), since: clk.Now()}, nil
}

// adopt makes the lease use the connection and the callback of another converger.
func (l *lease) adopt(c *apply.Cluster, lost func(error)) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client, l.lost = client, lost
	return nil
}

func (l *lease) api() kubernetes.Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

// write acquires or renews the lease. It takes the lease of another holder only if mayTake allows
// it, else it returns a HeldError.
func (l *lease) write(ctx context.Context, mayTake func(*HeldError) bool) error {
	for {
		err := l.writeOnce(ctx, mayTake)
		// After a conflict, read the lease again.
		if ctx.Err() != nil || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

func (l *lease) writeOnce(ctx context.Context, mayTake func(*HeldError) bool) error {
	leases := l.api().CoordinationV1().Leases(leaseNamespace)
	current, err := leases.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := l.ensureNamespace(ctx); err != nil {
			return err
		}
		created := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}}
		l.fill(created)
		_, err = leases.Create(ctx, created, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if held := l.heldBy(current); held != nil && (mayTake == nil || !mayTake(held)) {
		return held
	}
	l.fill(current)
	_, err = leases.Update(ctx, current, metav1.UpdateOptions{})
	return err
}

// heldBy returns who else holds the lease, nil if nobody does.
func (l *lease) heldBy(current *coordinationv1.Lease) *HeldError {
	holder := ptr.Deref(current.Spec.HolderIdentity, "")
	if holder == "" || holder == l.holder {
		return nil
	}
	return &HeldError{
		Cluster: l.cluster, Lease: l.name, Holder: holder,
		Since: ptr.Deref(current.Spec.AcquireTime, metav1.MicroTime{}).Time, Renewed: ptr.Deref(current.Spec.RenewTime, metav1.MicroTime{}).Time,
		duration: time.Duration(ptr.Deref(current.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
}

// fill sets this process as the holder from now on.
func (l *lease) fill(current *coordinationv1.Lease) {
	now := metav1.NewMicroTime(l.clock.Now())
	spec := &current.Spec
	if ptr.Deref(spec.HolderIdentity, "") != l.holder {
		spec.AcquireTime = &now
		spec.LeaseTransitions = ptr.To(ptr.Deref(spec.LeaseTransitions, -1) + 1)
	}
	spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &l.holder, ptr.To(int32(leaseDuration/time.Second)), &now
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.judged.IsZero() {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, annotationJudged, l.judged.UTC().Format(time.RFC3339))
	}
}

// noteJudged stores a time that the next renewal writes.
func (l *lease) noteJudged(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judged = at
}

func (l *lease) judgedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.judged
}

func (l *lease) ensureNamespace(ctx context.Context) error {
	_, err := l.api().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseNamespace}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// keep renews the lease until release, and reports its loss: another process may reconcile then.
func (l *lease) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.done.Go(func() {
		renewed, wait := l.clock.Now(), leaseRenew
		for {
			timer := l.clock.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
			started := l.clock.Now()
			attempt, cancel := context.WithTimeout(ctx, max(leaseDeadline-started.Sub(renewed), leaseRetry))
			err := l.write(attempt, nil)
			cancel()
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				renewed, wait = started, leaseRenew
				l.noteRenewed(started)
			case errors.As(err, new(*HeldError)):
				l.tellLost(err)
				return
			case l.clock.Since(renewed) >= leaseDeadline:
				l.tellLost(fmt.Errorf("cluster %s: lease %s/%s could not be renewed for %s: %w", l.cluster, leaseNamespace, l.name, leaseDeadline, err))
				return
			default:
				wait = leaseRetry
			}
		}
	})
}

func (l *lease) noteRenewed(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = at
}

// sure reports whether no other process can hold the lease. A process that was paused may not know
// yet that it has lost it.
func (l *lease) sure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.clock.Since(l.renewed) < leaseDuration
}

func (l *lease) tellLost(err error) {
	l.mu.Lock()
	lost := l.lost
	l.renewed = time.Time{}
	l.mu.Unlock()
	lost(&owner.LeaseLostError{Err: err})
}

// release releases the lease, so that the next holder need not wait.
func (l *lease) release() {
	l.stop()
	l.done.Wait()
	l.mu.Lock()
	l.renewed = time.Time{} // the next holder may work from now on
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	leases := l.api().CoordinationV1().Leases(leaseNamespace)
	current, err := leases.Get(ctx, l.name, metav1.GetOptions{})
	if err != nil || ptr.Deref(current.Spec.HolderIdentity, "") != l.holder {
		return
	}
	l.fill(current)
	current.Spec.HolderIdentity = nil
	// An error is harmless, because the lease expires.
	_, _ = leases.Update(ctx, current, metav1.UpdateOptions{})
}
