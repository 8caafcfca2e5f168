package landscape

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
)

// Lease is a lease that a process holds for all its convergers (Options.Leases).
type Lease struct{ lease *lease }

// AcquireOperatorLease acquires the lease of gardener-operator on a cluster, and renews it until
// Release. It waits while a living process holds the lease, and calls waiting once for each holder.
// It calls lost when a renewal fails for good: no write is allowed from then on.
func AcquireOperatorLease(ctx context.Context, cluster *apply.Cluster, holder string, clk clock.WithTicker, lost func(error), waiting func(*HeldError)) (*Lease, error) {
	return acquireShared(ctx, cluster, leaseOperator, holder, clk, lost, waiting)
}

// AcquireGardenletLease is AcquireOperatorLease for the lease of the gardenlet on a seed.
func AcquireGardenletLease(ctx context.Context, cluster *apply.Cluster, holder string, clk clock.WithTicker, lost func(error), waiting func(*HeldError)) (*Lease, error) {
	return acquireShared(ctx, cluster, leaseGardenlet, holder, clk, lost, waiting)
}

func acquireShared(ctx context.Context, cluster *apply.Cluster, name, holder string, clk clock.WithTicker, lost func(error), waiting func(*HeldError)) (*Lease, error) {
	told := ""
	for {
		l, err := acquireLease(ctx, cluster, name, holder, clk, lost, sighting{}, nil)
		var held *HeldError
		switch {
		case err == nil:
			return &Lease{l}, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.As(err, &held):
			return nil, err
		case held.Holder != told && waiting != nil:
			waiting(held)
		}
		told = held.Holder
		timer := clk.NewTimer(leaseRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C():
		}
	}
}

// Sure reports whether no other process can hold the lease by now.
func (l *Lease) Sure() bool { return l.lease.sure() }

// Release releases the lease, so that the next holder need not wait.
func (l *Lease) Release() { l.lease.release() }

// shares reports whether the process holds a lease for this converger.
func (c *Converger) shares(cluster, name string) bool {
	for _, l := range c.options.Connect.Leases {
		if l.lease.cluster == cluster && l.lease.name == name {
			return true
		}
	}
	return false
}

// Totals returns the number of known objects by cluster; objects of owners count once they are
// rendered.
func (c *Converger) Totals() map[string]int {
	out := map[string]int{}
	for cluster, n := range c.DeclaredTotals() {
		if n > 0 {
			out[cluster] += n
		}
	}
	for _, o := range c.members.all {
		for _, b := range o.now().Bundles() {
			out[o.ClusterName(b)] += len(b.Objects)
		}
	}
	return out
}

// DeclaredTotals returns the number of declared objects by cluster, and caches it.
func (c *Converger) DeclaredTotals() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.totals == nil {
		c.countDeclared(split(c.landscape))
	}
	return c.totals
}

// countDeclared counts the declared objects; the caller holds mu.
func (c *Converger) countDeclared(parts map[string]*declarations) {
	c.totals = map[string]int{}
	for cluster, d := range parts {
		c.totals[cluster] = d.count()
	}
}

// Refused returns the declarations that could not be applied in the last run, as `Kind
// namespace/name`.
func (c *Converger) Refused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for ref, refused := range c.now.refused {
		if refused {
			out = append(out, ref.String())
		}
	}
	slices.Sort(out)
	return out
}
