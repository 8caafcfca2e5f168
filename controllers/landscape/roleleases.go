// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"slices"

	"github.com/pergola-dev/pergola/controllers/owner"
)

// leaseOf returns the lease that the reconciler of an owner must hold.
func leaseOf(o *convergedOwner) (cluster, name string) {
	if o.Input.Owner.Kind == owner.Garden {
		return o.Local.Name(), operatorLease
	}
	return o.Local.Name(), gardenletLease
}

// ownLeases returns the leases of this process.
func (c *Converger) ownLeases() []*heldLease {
	c.mu.Lock()
	held := slices.Clone(c.leaseState.leases)
	c.mu.Unlock()
	for _, l := range c.options.Connections.Leases {
		held = append(held, l.lease)
	}
	return held
}

// acquireRoleLease acquires the lease of a role on a cluster, once.
func (c *Converger) acquireRoleLease(ctx context.Context, cluster, name string) error {
	if c.hasLease(cluster, name) {
		return nil
	}
	c.mu.Lock()
	seen := c.leaseState.sightings[cluster+" "+name]
	delete(c.leaseState.sightings, cluster+" "+name)
	c.mu.Unlock()
	l, err := acquireLease(ctx, c.connections.clusters[cluster], name, c.options.Process.Holder, c.options.Clock, func(err error) { c.leaseState.cancelLeases(err) }, seen, c.options.Listeners.OnLeaseWait)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaseState.leases = append(c.leaseState.leases, l)
	return nil
}

// observeLeases reads the leases of all seeds in the background. A crashed process leaves all of
// them behind, and this way their waits overlap. A failed read is reported when the lease is
// needed.
func (c *Converger) observeLeases(ctx context.Context) {
	c.mu.Lock()
	c.leaseState.sightings = map[string]leaseObservation{}
	c.mu.Unlock()
	for _, o := range c.members.all {
		cluster, name := leaseOf(o)
		if o.Input.Owner.Kind != owner.Seed || c.hasLease(cluster, name) {
			continue
		}
		go func() {
			seen, err := observeLease(ctx, o.Local, name, c.options.Process.Holder, c.options.Clock)
			if err != nil {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.leaseState.sightings[cluster+" "+name] = seen
		}()
	}
}

// hasLease reports whether this process holds a lease.
func (c *Converger) hasLease(cluster, name string) bool {
	if c.hasSharedLease(cluster, name) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.leaseState.leases {
		if l.cluster == cluster && l.name == name {
			return true
		}
	}
	return false
}

// ownersWithLease returns the owners whose lease this process holds.
func (c *Converger) ownersWithLease() []*convergedOwner {
	var out []*convergedOwner
	for _, o := range c.members.all {
		if cluster, name := leaseOf(o); c.hasLease(cluster, name) {
			out = append(out, o)
		}
	}
	return out
}

// withLeaseContext returns a context that also ends when a lease is lost.
func (c *Converger) withLeaseContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.leaseState.leaseContext, func() { cancel(context.Cause(c.leaseState.leaseContext)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// leaseError returns why a lease was lost, or nil if none was.
func (c *Converger) leaseError() error {
	if c.leaseState.leaseContext.Err() == nil {
		return nil
	}
	return context.Cause(c.leaseState.leaseContext)
}

// inheritLeases takes over the leases of another converger of this process, so that no other
// process can acquire them in between. The other converger keeps a lease whose cluster is missing
// here, or has another address.
func (c *Converger) inheritLeases(old *Converger) error {
	c.runs.TakeOver(old.runs)
	old.mu.Lock()
	defer old.mu.Unlock()
	var rest []*heldLease
	var problems []error
	for _, l := range old.leaseState.leases {
		cluster, before := c.connections.clusters[l.cluster], old.connections.clusters[l.cluster]
		if cluster == nil || cluster.RESTConfig().Host != before.RESTConfig().Host {
			rest = append(rest, l)
			continue
		}
		if err := l.useConnection(cluster, func(err error) { c.leaseState.cancelLeases(err) }); err != nil {
			problems, rest = append(problems, err), append(rest, l)
			continue
		}
		c.leaseState.leases = append(c.leaseState.leases, l)
	}
	old.leaseState.leases = rest
	if err := old.leaseError(); err != nil {
		c.leaseState.cancelLeases(err)
	}
	return errors.Join(problems...)
}
