// SPDX-License-Identifier: Apache-2.0

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

// convergedOwner is an owner of the landscape, with the State of its current or last run.
type convergedOwner struct {
	owner.Owner
	converger *Converger
	// hasUnwrittenHealth reports whether the last health check could not be written.
	hasUnwrittenHealth bool

	mu        sync.Mutex
	lastState owner.State
}

// state returns the State of the current or last run.
func (m *convergedOwner) state() owner.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastState
}

func (m *convergedOwner) setState(s owner.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastState = s
}

// addOwner adds an owner to the landscape.
func (c *Converger) addOwner(o owner.Owner) *convergedOwner {
	m := &convergedOwner{Owner: o, converger: c}
	m.OnState = m.setState
	c.members.all = append(c.members.all, m)
	return m
}

func newFleet(clk clock.WithTicker) *fleet.Fleet[*convergedOwner] {
	return fleet.New(fleet.Options[*convergedOwner]{Clock: clk, Slots: concurrentShoots})
}

// fillFleet adds all owners to the fleet.
func (c *Converger) fillFleet() {
	var idle []fleet.Member[*convergedOwner]
	for _, o := range c.members.all {
		m := c.fleetMember(o)
		m.Converge = nil
		idle = append(idle, m)
	}
	c.members.fleet.Set(context.Background(), idle)
}

// fleetMember returns an owner for the fleet. Shoots follow their Seed, for which this process must
// hold the lease.
func (c *Converger) fleetMember(o *convergedOwner) fleet.Member[*convergedOwner] {
	m := fleet.Member[*convergedOwner]{
		ID: o.String(), Pool: o.String(),
		New:      func() *convergedOwner { return o },
		Converge: func(ctx context.Context, _ *convergedOwner) error { return c.convergeOwner(ctx, o) },
	}
	switch o.Input.Owner.Kind {
	case owner.Seed:
		m.Converge = func(ctx context.Context, _ *convergedOwner) error {
			if err := c.acquireRoleLease(ctx, o.Local.Name(), gardenletLease); err != nil {
				c.setConditionsUnknown(ctx, o, err)
				return fmt.Errorf("%s: %w", o, err)
			}
			return c.convergeOwner(ctx, o)
		}
	case owner.Shoot:
		m.Pool, m.After = o.Local.Name(), []string{render.Owner{Kind: owner.Seed, Name: o.Local.Name()}.String()}
	}
	return m
}

// HasObjects implements fleet.Owner. Owners whose lease another process holds are ignored.
func (m *convergedOwner) HasObjects() (something, rendered bool) {
	return m.converger.hasLease(leaseOf(m)), true
}

// SetOf implements fleet.Owner.
func (m *convergedOwner) SetOf(cluster string, managedResource apply.Ref) string {
	return m.converger.members.reconciler.SetOfManaged(m.Owner, m.state(), cluster, managedResource)
}

// Repair implements fleet.Owner.
func (m *convergedOwner) Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool) {
	return m.converger.repairAndReport(ctx, e, func() (bool, error) {
		_, done, found, err := m.converger.members.reconciler.Repair(ctx, m.Owner, m.state(), e.Set)
		if !found || done.Ignored {
			return false, nil
		}
		for _, h := range done.Held {
			m.converger.addHeld(h.Cluster, h.Objects, h.Approval)
		}
		m.converger.recordSkipped(done.Unrepaired...)
		return true, err
	})
}

// Care implements fleet.Owner.
func (m *convergedOwner) Care(ctx context.Context) {
	owners := m.converger.members.reconciler
	// The next round finishes incomplete steps; the health check runs anyway.
	_ = panics.AsError(func() error {
		_, removing := owners.FinishRemovals(ctx, m.Owner, m.state())
		_, waiting := owners.ApplyWaiting(ctx, m.Owner, m.state())
		return errors.Join(removing, waiting)
	})()
	_, conditions, err := owners.Care(ctx, m.Owner, m.state())
	m.hasUnwrittenHealth = err != nil
	if err == nil && m.converger.options.Listeners.OnHealth != nil {
		m.converger.options.Listeners.OnHealth(m.String(), conditions)
	}
}
