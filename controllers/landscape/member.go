package landscape

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
)

// concurrentShoots is how many Shoots of a seed are converged at a time.
const concurrentShoots = 8

// member is an owner of the landscape in its fleet.
type member struct {
	*owner.Owner
	c *Converger
	// unjudged reports whether the last judgement could not be written.
	unjudged bool
}

func newFleet(clk clock.WithTicker) *fleet.Fleet[*member] {
	return fleet.New(fleet.Options[*member]{Clock: clk, Slots: concurrentShoots})
}

// enlist makes the owners the members of the fleet.
func (c *Converger) enlist() {
	var idle []fleet.Member[*member]
	for _, o := range c.members.all {
		m := c.member(o)
		m.Converge = nil
		idle = append(idle, m)
	}
	c.members.fleet.Set(context.Background(), idle)
}

// member is one owner for the fleet. Shoots come after their Seed, of which this process has to hold the lease.
func (c *Converger) member(o *owner.Owner) fleet.Member[*member] {
	m := fleet.Member[*member]{
		ID: o.String(), Pool: o.Local.Name(),
		New:      func() *member { return &member{Owner: o, c: c} },
		Converge: func(ctx context.Context, _ *member) error { return c.convergeOne(ctx, o) },
	}
	switch o.Input.Owner.Kind {
	case owner.Seed:
		m.Converge = func(ctx context.Context, _ *member) error {
			if err := c.lock(ctx, o.Local.Name(), leaseGardenlet); err != nil {
				c.giveUp(ctx, o, err)
				return fmt.Errorf("%s: %w", o, err)
			}
			return c.convergeOne(ctx, o)
		}
	case owner.Shoot:
		m.After = []string{render.Owner{Kind: owner.Seed, Name: o.Local.Name()}.String()}
	}
	return m
}

// Left is fleet.Owner: owners of whom another process has the lease are its business.
func (m *member) Left() (something, rendered bool) { return m.c.holds(leaseOf(m.Owner)), true }

// SetOf is fleet.Owner.
func (m *member) SetOf(cluster string, managedResource apply.Ref) string {
	return m.c.members.owners.SetOfManaged(m.Owner, cluster, managedResource)
}

// Repair is fleet.Owner.
func (m *member) Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool) {
	return m.c.answer(ctx, e, func() (bool, error) {
		done, found, err := m.c.members.owners.Repair(ctx, m.Owner, e.Set)
		if !found || done.Ignored {
			return false, nil
		}
		for _, h := range done.Held {
			m.c.hold(h.Cluster, h.Objects, h.Approval)
		}
		m.c.noteNotApplied(done.Left...)
		return true, err
	})
}

// Care is fleet.Owner.
func (m *member) Care(ctx context.Context) {
	owners := m.c.members.owners
	// The next round finishes what this one cannot; it is no reason not to judge.
	_ = panics.Safe(func() error {
		return errors.Join(owners.FinishRemovals(ctx, m.Owner), owners.ApplyWaiting(ctx, m.Owner))
	})()
	conditions, err := owners.Care(ctx, m.Owner)
	m.unjudged = err != nil
	if err == nil && m.c.options.Hear.OnCare != nil {
		m.c.options.Hear.OnCare(m.String(), conditions)
	}
}
