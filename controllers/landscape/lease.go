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

// Leases of the roles, upstream's names: whoever holds one is the only one that converges.
const (
	leaseNamespace = "garden"
	leaseOperator  = "gardener-operator-leader-election"
	leaseGardenlet = "gardenlet-leader-election"
)

// annotationJudged on a Lease says when its holder last judged everything on the cluster:
// conditions that stay the same are not written, so their times do not tell.
const annotationJudged = "landscape.pergola.dev/judged"

// A holder that cannot renew stops before anybody else may take over. Upstream's leader election
// has 15 s and 10 s; these are twice as long, since an API server that takes in the definitions of
// a whole Garden at once may not answer for that long where it has few CPUs.
const (
	leaseDuration = 30 * time.Second
	leaseDeadline = 20 * time.Second
	leaseRenew    = 5 * time.Second
	// leaseRetry is how often we look whether the holder of a lease is still there, and how soon a
	// renewal is repeated.
	leaseRetry = 500 * time.Millisecond
	// leaseAbandoned is more than clocks differ: whoever renewed longer ago is gone for sure.
	leaseAbandoned = 10 * time.Minute
)

// HeldError says who converges already.
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

// residents are the processes that hold a lease as long as they run, as their identities tell (pod
// names are host names): Pergola's and upstream's.
var residents = regexp.MustCompile(`_pergola-(operator|gardenlet)_|^(gardener-operator|gardenlet)-`)

func (e *HeldError) resident() bool { return residents.MatchString(e.Holder) }

// beside says what to do beside a process that does not end. A Landscape that is suspended does not
// help: its operator keeps the lease.
func (e *HeldError) beside() string {
	where := fmt.Sprintf("cluster %s: %%s: %s has had lease %s/%s since %s (renewed %s): %%s; pergola diff --live and apply --dry-run work beside it",
		e.Cluster, HolderText(e.Holder), leaseNamespace, e.Lease, e.Since.UTC().Format(time.RFC3339), e.Renewed.UTC().Format(time.RFC3339))
	if e.Lease == leaseGardenlet {
		return fmt.Sprintf(where, "a gardenlet looks after this seed", "what is pushed reaches it by the operator; to apply from here, stop it first")
	}
	return fmt.Sprintf(where, "an operator applies what is in Git here", "push the change, or have what was pushed applied now by pergola sync LANDSCAPE; to apply from here, stop it first")
}

// sounds says whether a process that does not end has renewed within the duration of its lease, as
// far as our clock tells. One that crashed a moment ago does, too: whoever is refused for it asks
// again.
func (e *HeldError) sounds(now time.Time) bool {
	return e.resident() && now.Sub(e.Renewed).Abs() < e.duration
}

func (e *HeldError) same(o *HeldError) bool {
	return e != nil && o != nil && e.Holder == o.Holder && e.Renewed.Equal(o.Renewed)
}

// lease is one that we hold.
type lease struct {
	cluster, name, holder string
	clock                 clock.WithTicker

	mu     sync.Mutex
	client kubernetes.Interface
	lost   func(error)
	judged time.Time
	// renewed is when the last renewal that succeeded was sent; zero once the lease is lost.
	renewed time.Time

	stop context.CancelFunc
	done sync.WaitGroup
}

// leaseNotice is after how long somebody who waits for a lease is told so.
const leaseNotice = time.Second

// Waiting says for which lease a run waits, until its holder shows whether it is alive.
type Waiting struct {
	// Held says who has the lease.
	Held *HeldError
	// For is how long we still wait if the holder does not renew.
	For time.Duration
}

// sighting is a lease that another one holds, and since when we have seen it like that.
type sighting struct {
	held  *HeldError
	since time.Time
}

// String is a line for people.
func (w Waiting) String() string {
	return fmt.Sprintf("cluster %s: lease %s/%s is held by %s since %s (renewed %s): waiting up to %s more to see whether it is alive",
		w.Held.Cluster, leaseNamespace, w.Held.Lease, w.Held.Holder, w.Held.Since.UTC().Format(time.RFC3339), w.Held.Renewed.UTC().Format(time.RFC3339), w.For.Round(time.Second))
}

// acquireLease takes a lease that is free. One that is held is watched for as long as it takes to
// see whether its holder is alive: a living one is named as soon as it renews, a crashed one does
// not block longer than the lease's duration. Clocks differ, so a renewal is compared with the one
// before and not with our time. Only a person, who is told of waiting, does not wait for an
// operator or a gardenlet that seems to run: it does not end.
//
// seen is what was seen of the lease earlier, so that several leases are waited for at the same
// time; waiting, if any, is told once when it takes longer than a moment.
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

// sight looks who else holds a lease; nobody is a sighting of nothing.
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

// adopt makes the lease use the connections of another converger, and tell it when the lease is
// lost.
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

// write takes or renews the lease. That of another holder is taken only if mayTake allows it;
// otherwise it is a HeldError.
func (l *lease) write(ctx context.Context, mayTake func(*HeldError) bool) error {
	for {
		err := l.writeOnce(ctx, mayTake)
		// Somebody was quicker: look again who it was.
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

// heldBy says who else has the lease, nil when nobody has.
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

// fill makes the lease ours, from now on.
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

// noteJudged is written with the next renewal.
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

// keep renews until release; a lease that is lost is reported, since somebody else may converge
// now.
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

// sure tells whether nobody else can have the lease: a process that was stopped for long does not
// know yet that it lost it.
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
	lost(&owner.LostError{Err: err})
}

// release gives the lease back, so that the next one need not wait.
func (l *lease) release() {
	l.stop()
	l.done.Wait()
	l.mu.Lock()
	l.renewed = time.Time{} // whoever waits for it may work from now on
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
	// An expired lease is as good as a released one, so an error here has no consequence.
	_, _ = leases.Update(ctx, current, metav1.UpdateOptions{})
}
