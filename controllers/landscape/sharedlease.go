// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
)

// SharedLease is a lease that a process holds for all its convergers (Options.Leases).
type SharedLease struct{ lease *heldLease }

// AcquireOperatorLease acquires the lease of gardener-operator on a cluster, and renews it until
// Release. It waits while a living process holds the lease, and calls waiting once for each holder.
// It calls lost when a renewal fails for good: no write is allowed from then on.
func AcquireOperatorLease(ctx context.Context, cluster *apply.Cluster, holder string, clk clock.WithTicker, lost func(error), waiting func(*LeaseHeldError)) (*SharedLease, error) {
	return acquireSharedLease(ctx, cluster, operatorLease, holder, clk, lost, waiting)
}

// AcquireGardenletLease is AcquireOperatorLease for the lease of the gardenlet on a seed.
func AcquireGardenletLease(ctx context.Context, cluster *apply.Cluster, holder string, clk clock.WithTicker, lost func(error), waiting func(*LeaseHeldError)) (*SharedLease, error) {
	return acquireSharedLease(ctx, cluster, gardenletLease, holder, clk, lost, waiting)
}

func acquireSharedLease(ctx context.Context, cluster *apply.Cluster, name, holder string, clk clock.WithTicker, lost func(error), waiting func(*LeaseHeldError)) (*SharedLease, error) {
	told := ""
	for {
		l, err := acquireLease(ctx, cluster, name, holder, clk, lost, leaseObservation{}, nil)
		var held *LeaseHeldError
		switch {
		case err == nil:
			return &SharedLease{l}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.As(err, &held):
			return nil, err
		case held.Holder != told && waiting != nil:
			waiting(held)
		}
		told = held.Holder
		timer := clk.NewTimer(leaseRetryInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C():
		}
	}
}

// IsExclusive reports whether no other process can hold the lease by now.
func (l *SharedLease) IsExclusive() bool { return l.lease.isExclusive() }

// Release releases the lease, so that the next holder need not wait.
func (l *SharedLease) Release() { l.lease.release() }

// hasSharedLease reports whether the process holds a lease for this converger.
func (c *Converger) hasSharedLease(cluster, name string) bool {
	for _, l := range c.options.Connections.Leases {
		if l.lease.cluster == cluster && l.lease.name == name {
			return true
		}
	}
	return false
}

// ObjectTotals returns the number of known objects by cluster; objects of owners count once they
// are rendered.
func (c *Converger) ObjectTotals() map[string]int {
	out := map[string]int{}
	for cluster, n := range c.DeclaredTotals() {
		if n > 0 {
			out[cluster] += n
		}
	}
	for _, o := range c.members.all {
		for _, b := range o.state().Bundles() {
			out[o.ClusterName(b)] += len(b.Objects)
		}
	}
	return out
}

// DeclaredTotals returns the number of declared objects by cluster, and caches it.
func (c *Converger) DeclaredTotals() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.declaredTotals == nil {
		c.countDeclared(splitByCluster(c.landscape))
	}
	return c.declaredTotals
}

// countDeclared counts the declared objects; the caller holds mu.
func (c *Converger) countDeclared(parts map[string]*declarations) {
	c.declaredTotals = map[string]int{}
	for cluster, d := range parts {
		c.declaredTotals[cluster] = d.count()
	}
}

// FailedDeclarations returns the declarations that could not be applied in the last run, as `Kind
// namespace/name`.
func (c *Converger) FailedDeclarations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for ref, refused := range c.currentRun.failedDeclarations {
		if refused {
			out = append(out, ref.String())
		}
	}
	slices.Sort(out)
	return out
}
