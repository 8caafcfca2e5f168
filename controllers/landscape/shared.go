package landscape

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
)

// Lease of a role that a process holds for all its convergers, one after another or side by side
// (Options.Leases).
type Lease struct{ lease *lease }

// AcquireOperatorLease takes the lease of gardener-operator on a cluster, and renews it until
// Release. While a living process holds it, it waits; waiting is told once for each holder. lost is
// told when it could not be renewed: nothing may be written from then on.
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

// Sure tells whether nobody else can have the lease by now.
func (l *Lease) Sure() bool { return l.lease.sure() }

// Release gives the lease back, so that the next one need not wait.
func (l *Lease) Release() { l.lease.release() }

// shares says whether a lease is held for this converger.
func (c *Converger) shares(cluster, name string) bool {
	for _, l := range c.options.Connect.Leases {
		if l.lease.cluster == cluster && l.lease.name == name {
			return true
		}
	}
	return false
}

// Totals counts the objects that the landscape has on each cluster, as far as they are known: those
// of owners once they were rendered.
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

// DeclaredTotals is how many objects are declared for each cluster. They are counted once.
func (c *Converger) DeclaredTotals() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.totals == nil {
		c.countDeclared(split(c.landscape))
	}
	return c.totals
}

// countDeclared notes how many objects there are; the caller holds mu.
func (c *Converger) countDeclared(parts map[string]*declarations) {
	c.totals = map[string]int{}
	for cluster, d := range parts {
		c.totals[cluster] = d.count()
	}
}

// Refused names the declarations that could not become what Git says in the last run, as `Kind
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
