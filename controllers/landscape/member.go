package landscape

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
)

// concurrentShoots limits the Shoots of a seed that are reconciled concurrently.
const concurrentShoots = 8

// member is an owner of the landscape, with the State of its current or last run.
type member struct {
	owner.Owner
	c *Converger
	// unjudged reports whether the last health check could not be written.
	unjudged bool

	mu   sync.Mutex
	last owner.State
}

// now returns the State of the current or last run.
func (m *member) now() owner.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *member) keep(s owner.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = s
}

// add adds an owner to the landscape.
func (c *Converger) add(o owner.Owner) *member {
	m := &member{Owner: o, c: c}
	m.OnState = m.keep
	c.members.all = append(c.members.all, m)
	return m
}

func newFleet(clk clock.WithTicker) *fleet.Fleet[*member] {
	return fleet.New(fleet.Options[*member]{Clock: clk, Slots: concurrentShoots})
}

// enlist adds all owners to the fleet.
func (c *Converger) enlist() {
	var idle []fleet.Member[*member]
	for _, o := range c.members.all {
		m := c.member(o)
		m.Converge = nil
		idle = append(idle, m)
	}
	c.members.fleet.Set(context.Background(), idle)
}

// member returns an owner for the fleet. Shoots follow their Seed, for which this process must hold
// the lease.
func (c *Converger) member(o *member) fleet.Member[*member] {
	m := fleet.Member[*member]{
		ID: o.String(), Pool: o.String(),
		New:      func() *member { return o },
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
		m.Pool, m.After = o.Local.Name(), []string{render.Owner{Kind: owner.Seed, Name: o.Local.Name()}.String()}
	}
	return m
}

// Left implements fleet.Owner. Owners whose lease another process holds are ignored.
func (m *member) HasObjects() (something, rendered bool) { return m.c.holds(leaseOf(m)), true }

// SetOf implements fleet.Owner.
func (m *member) SetOf(cluster string, managedResource apply.Ref) string {
	return m.c.members.reconciler.SetOfManaged(m.Owner, m.now(), cluster, managedResource)
}

// Repair implements fleet.Owner.
func (m *member) Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool) {
	return m.c.answer(ctx, e, func() (bool, error) {
		_, done, found, err := m.c.members.reconciler.Repair(ctx, m.Owner, m.now(), e.Set)
		if !found || done.Ignored {
			return false, nil
		}
		for _, h := range done.Held {
			m.c.hold(h.Cluster, h.Objects, h.Approval)
		}
		m.c.noteNotApplied(done.Unrepaired...)
		return true, err
	})
}

// Care implements fleet.Owner.
func (m *member) Care(ctx context.Context) {
	owners := m.c.members.reconciler
	// The next round finishes incomplete steps; the health check runs anyway.
	_ = panics.Safe(func() error {
		_, removing := owners.FinishRemovals(ctx, m.Owner, m.now())
		_, waiting := owners.ApplyWaiting(ctx, m.Owner, m.now())
		return errors.Join(removing, waiting)
	})()
	_, conditions, err := owners.Care(ctx, m.Owner, m.now())
	m.unjudged = err != nil
	if err == nil && m.c.options.Hear.OnCare != nil {
		m.c.options.Hear.OnCare(m.String(), conditions)
	}
}
