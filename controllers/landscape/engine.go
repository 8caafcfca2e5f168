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
		Clock: options.Clock, Force: forces(l, options.Take.Force), ForceHint: options.Take.ForceHint, Kin: managedresource.IsFieldManager,
	})
}

// forceHint returns how a person overwrites fields of others. Where an operator applies the
// landscape, the hint names Git, because another run gets no lease.
func (c *Converger) forceHint(ref apply.Ref) string {
	c.mu.Lock()
	kept := c.role.keptBy
	c.mu.Unlock()
	if kept != "" {
		return fmt.Sprintf("overwrite it with the annotation %s: \"true\" in Git, as %s applies the landscape", conventions.ManagedResourceKeys().ForceConflicts, kept)
	}
	if c.options.Take.ForceHint == nil {
		return "force"
	}
	return c.options.Take.ForceHint(ref)
}

// noteKeeper records the other process that applies the landscape, if there is one.
func (c *Converger) noteKeeper(ctx context.Context) {
	if c.links.clusters[Runtime] == nil || c.holds(Runtime, leaseOperator) {
		return
	}
	keeper, err := c.keeperOf(ctx, c.links.clusters[Runtime], leaseOperator)
	if err != nil || keeper.holder == c.options.Self.Holder {
		return // other reads report the cause
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.role.keptBy = keeper.holder
}

// forces returns a predicate: whether to take over fields of an object from others. The landscape
// sets it for all, a person for some.
func forces(l *landscapes.Landscape, some func(apply.Ref) bool) func(apply.Ref) bool {
	return func(ref apply.Ref) bool { return l.Config.Spec.ForceConflicts || some != nil && some(ref) }
}
