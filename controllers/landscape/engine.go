// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/landscapes"
)

// NewEngine returns the engine for a landscape; successive convergers share it.
func NewEngine(l *landscapes.Landscape, options Options) *apply.Engine {
	return conventions.NewEngine(apply.Options{
		Clock: options.Clock, IsForced: forcePredicate(l, options.Takeover.Force), ForceHint: options.Takeover.ForceHint, IsSibling: managedresource.IsFieldManager,
	})
}

// forceHint returns how a person overwrites fields of others. Where an operator applies the
// landscape, the hint names Git, because another run gets no lease.
func (c *Converger) forceHint(ref apply.Ref) string {
	c.mu.Lock()
	kept := c.leaseState.otherHolder
	c.mu.Unlock()
	if kept != "" {
		return fmt.Sprintf("overwrite it with the annotation %s: \"true\" in Git, as %s applies the landscape", conventions.ManagedResourceKeys().ForceConflicts, kept)
	}
	if c.options.Takeover.ForceHint == nil {
		return "force"
	}
	return c.options.Takeover.ForceHint(ref)
}

// recordOtherHolder records the other process that applies the landscape, if there is one.
func (c *Converger) recordOtherHolder(ctx context.Context) {
	if c.connections.clusters[Runtime] == nil || c.hasLease(Runtime, operatorLease) {
		return
	}
	keeper, err := c.readRoleHolder(ctx, c.connections.clusters[Runtime], operatorLease)
	if err != nil || keeper.holder == c.options.Process.Holder {
		return // other reads report the cause
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaseState.otherHolder = keeper.holder
}

// forcePredicate returns a predicate: whether to take over fields of an object from others. The
// landscape sets it for all, a person for some.
func forcePredicate(l *landscapes.Landscape, some func(apply.Ref) bool) func(apply.Ref) bool {
	return func(ref apply.Ref) bool { return l.Config.Spec.ForceConflicts || some != nil && some(ref) }
}
