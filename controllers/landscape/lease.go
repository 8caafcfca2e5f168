package landscape

import (
	"context"
	"errors"
	"fmt"
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
)

// Leases of the roles, upstream's names: whoever holds one is the only one that converges.
const (
	leaseNamespace = "garden"
	leaseOperator  = "gardener-operator-leader-election"
	leaseGardenlet = "gardenlet-leader-election"
)

// Durations as in upstream's leader election.
const (
	leaseDuration = 15 * time.Second
	leaseRenew    = 5 * time.Second
	// leaseRetry is how often we look whether the holder of a lease is still there.
	leaseRetry = 500 * time.Millisecond
)

// HeldError says who converges already.
type HeldError struct {
	Cluster, Lease, Holder string
	Renewed                time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("cluster %s: lease %s/%s is held by %s (renewed %s): wait until it is done, or stop it", e.Cluster, leaseNamespace, e.Lease, e.Holder, e.Renewed.UTC().Format(time.RFC3339))
}

// lease is one that we hold.
type lease struct {
	client  kubernetes.Interface
	cluster string
	name    string
	holder  string
	clock   clock.WithTicker

	stop context.CancelFunc
	done sync.WaitGroup
}

// acquireLease takes a lease that is free or expired. One that is held is watched for as
// long as it takes to see whether its holder is alive: a living one is named as soon as it renews, a crashed one
// does not block longer than the lease's duration.
func acquireLease(ctx context.Context, c *apply.Cluster, name, holder string, clk clock.WithTicker, lost func(error)) (*lease, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	l := &lease{client: client, cluster: c.Name(), name: name, holder: holder, clock: clk}
	tick := clk.NewTicker(leaseRetry)
	defer tick.Stop()
	var first time.Time
	for {
		held, err := l.try(ctx)
		if err == nil {
			l.keep(lost)
			return l, nil
		}
		var other *HeldError
		if !errors.As(err, &other) {
			return nil, c.Explain(apply.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: leaseNamespace, Name: name}, "acquire", err)
		}
		if first.IsZero() {
			first = held.Spec.RenewTime.Time
		}
		if held.Spec.RenewTime.After(first) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C():
		}
	}
}

// try writes the lease, or returns the one that is held.
func (l *lease) try(ctx context.Context) (*coordinationv1.Lease, error) {
	leases := l.client.CoordinationV1().Leases(leaseNamespace)
	now := metav1.NewMicroTime(l.clock.Now())
	spec := coordinationv1.LeaseSpec{
		HolderIdentity: &l.holder, LeaseDurationSeconds: ptr.To(int32(leaseDuration / time.Second)),
		AcquireTime: &now, RenewTime: &now,
	}
	current, err := leases.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := l.ensureNamespace(ctx); err != nil {
			return nil, err
		}
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name}, Spec: spec}, metav1.CreateOptions{})
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if holder := ptr.Deref(current.Spec.HolderIdentity, ""); holder != "" && holder != l.holder && !l.expired(current) {
		return current, &HeldError{Cluster: l.cluster, Lease: l.name, Holder: holder, Renewed: current.Spec.RenewTime.Time}
	}
	current.Spec = spec
	_, err = leases.Update(ctx, current, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return l.try(ctx)
	}
	return nil, err
}

func (l *lease) expired(current *coordinationv1.Lease) bool {
	if current.Spec.RenewTime == nil || current.Spec.LeaseDurationSeconds == nil {
		return true
	}
	return l.clock.Since(current.Spec.RenewTime.Time) > time.Duration(*current.Spec.LeaseDurationSeconds)*time.Second
}

func (l *lease) ensureNamespace(ctx context.Context) error {
	_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseNamespace}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// keep renews until release; a lease that is lost is reported, since somebody else may converge now.
func (l *lease) keep(lost func(error)) {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.done.Add(1)
	tick := l.clock.NewTicker(leaseRenew)
	go func() {
		defer l.done.Done()
		defer tick.Stop()
		renewed := l.clock.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
			}
			attempt, cancel := context.WithTimeout(ctx, leaseRenew)
			_, err := l.try(attempt)
			cancel()
			var held *HeldError
			switch {
			case err == nil:
				renewed = l.clock.Now()
			case errors.As(err, &held):
				lost(err)
				return
			case l.clock.Since(renewed) > leaseDuration && ctx.Err() == nil:
				lost(fmt.Errorf("cluster %s: lease %s/%s could not be renewed: %w", l.cluster, leaseNamespace, l.name, err))
				return
			}
		}
	}()
}

// release gives the lease back, so that the next one need not wait.
func (l *lease) release() {
	l.stop()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	current, err := l.client.CoordinationV1().Leases(leaseNamespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil || ptr.Deref(current.Spec.HolderIdentity, "") != l.holder {
		return
	}
	current.Spec.HolderIdentity = nil
	// An expired lease is as good as a released one, so an error here has no consequence.
	_, _ = l.client.CoordinationV1().Leases(leaseNamespace).Update(ctx, current, metav1.UpdateOptions{})
}
