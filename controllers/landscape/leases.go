package landscape

import (
	"context"
	"errors"
	"slices"

	"github.com/pergola-dev/pergola/controllers/owner"
)

// leaseOf returns the lease that the reconciler of an owner must hold.
func leaseOf(o *member) (cluster, name string) {
	if o.Input.Owner.Kind == owner.Garden {
		return o.Local.Name(), leaseOperator
	}
	return o.Local.Name(), leaseGardenlet
}

// heldLeases returns the leases of this process.
func (c *Converger) heldLeases() []*lease {
	c.mu.Lock()
	held := slices.Clone(c.role.leases)
	c.mu.Unlock()
	for _, l := range c.options.Connect.Leases {
		held = append(held, l.lease)
	}
	return held
}

// lock acquires the lease of a role on a cluster, once.
func (c *Converger) lock(ctx context.Context, cluster, name string) error {
	if c.holds(cluster, name) {
		return nil
	}
	c.mu.Lock()
	seen := c.role.sighted[cluster+" "+name]
	delete(c.role.sighted, cluster+" "+name)
	c.mu.Unlock()
	l, err := acquireLease(ctx, c.links.clusters[cluster], name, c.options.Self.Holder, c.options.Clock, func(err error) { c.role.die(err) }, seen, c.options.Hear.OnWaiting)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.role.leases = append(c.role.leases, l)
	return nil
}

// sightLeases reads the leases of all seeds in the background. A crashed process leaves all of them
// behind, and this way their waits overlap. A failed read is reported when the lease is needed.
func (c *Converger) sightLeases(ctx context.Context) {
	c.mu.Lock()
	c.role.sighted = map[string]sighting{}
	c.mu.Unlock()
	for _, o := range c.members.all {
		cluster, name := leaseOf(o)
		if o.Input.Owner.Kind != owner.Seed || c.holds(cluster, name) {
			continue
		}
		go func() {
			seen, err := sight(ctx, o.Local, name, c.options.Self.Holder, c.options.Clock)
			if err != nil {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.role.sighted[cluster+" "+name] = seen
		}()
	}
}

// holds reports whether this process holds a lease.
func (c *Converger) holds(cluster, name string) bool {
	if c.shares(cluster, name) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.role.leases {
		if l.cluster == cluster && l.name == name {
			return true
		}
	}
	return false
}

// ours returns the owners whose lease this process holds.
func (c *Converger) ours() []*member {
	var out []*member
	for _, o := range c.members.all {
		if cluster, name := leaseOf(o); c.holds(cluster, name) {
			out = append(out, o)
		}
	}
	return out
}

// whileLeased returns a context that also ends when a lease is lost.
func (c *Converger) whileLeased(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.role.alive, func() { cancel(context.Cause(c.role.alive)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// lostLease returns why a lease was lost, nil if none was.
func (c *Converger) lostLease() error {
	if c.role.alive.Err() == nil {
		return nil
	}
	return context.Cause(c.role.alive)
}

// inherit takes over the leases of another converger of this process, so that no other process can
// acquire them in between. The other converger keeps a lease whose cluster is missing here, or has
// another address.
func (c *Converger) inherit(old *Converger) error {
	c.runs.TakeOver(old.runs)
	old.mu.Lock()
	defer old.mu.Unlock()
	var rest []*lease
	var problems []error
	for _, l := range old.role.leases {
		cluster, before := c.links.clusters[l.cluster], old.links.clusters[l.cluster]
		if cluster == nil || cluster.RESTConfig().Host != before.RESTConfig().Host {
			rest = append(rest, l)
			continue
		}
		if err := l.adopt(cluster, func(err error) { c.role.die(err) }); err != nil {
			problems, rest = append(problems, err), append(rest, l)
			continue
		}
		c.role.leases = append(c.role.leases, l)
	}
	old.role.leases = rest
	if err := old.lostLease(); err != nil {
		c.role.die(err)
	}
	return errors.Join(problems...)
}
