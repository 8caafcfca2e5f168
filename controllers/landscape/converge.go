// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/fleet"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/panics"
)

// Apply reconciles the landscape once: leases, bootstrap, the Garden; as soon as the virtual garden
// serves, also its declarations, the Seeds and the Shoots. A failure stops only steps that depend
// on it. The review, and approvals in use, count until a run succeeds.
func (c *Converger) Apply(ctx context.Context) (report *RunReport, err error) {
	defer func() {
		c.runs.EndRun(err == nil)
		report = report.snapshot()
	}()
	c.currentRun.report = RunReport{}
	c.runs.BeginRun()
	c.resetDrift()
	c.resetDryRun()
	c.resetGardenDeletion()
	if err := CheckDecryptable(c.landscape); err != nil {
		return &c.currentRun.report, err
	}
	ctx, cancel := c.withLeaseContext(ctx)
	defer cancel()
	if c.connections.clusters[Runtime] == nil {
		return &c.currentRun.report, errors.Join(c.members.accessErrors...)
	}
	problems := slices.Clone(c.members.accessErrors)
	parts := splitByCluster(c.landscape)
	c.mu.Lock()
	c.countDeclared(parts)
	c.mu.Unlock()
	c.observeLeases(ctx)
	if err := c.acquireRoleLease(ctx, Runtime, operatorLease); err != nil {
		return &c.currentRun.report, errors.Join(append(problems, err)...)
	}
	if err := c.applyBootstrap(ctx); err != nil {
		return &c.currentRun.report, errors.Join(append(problems, fmt.Errorf("bootstrap of the runtime cluster: %w", err))...)
	}
	if err := c.applyDeclarations(ctx, Runtime, parts[Runtime]); err != nil {
		problems = append(problems, fmt.Errorf("declarations of the runtime cluster: %w", err))
	}
	problems = append(problems, c.runOperations(ctx, Runtime))
	if ending, err := c.deleteGarden(ctx); ending {
		return &c.currentRun.report, errors.Join(append(problems, err, c.leaseError())...)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- panics.AsError(func() error { return c.convergeGarden(ctx, sync.OnceFunc(func() { close(ready) })) })()
	}()
	var gardenErr error
	running := true
	select {
	case <-ready:
	case gardenErr = <-ended:
		running = false
	}
	var rest error
	if ctx.Err() == nil {
		rest = c.convergeVirtual(ctx, parts[Virtual])
	}
	if running {
		gardenErr = <-ended
	}
	c.recheckHealth(ctx)
	problems = append(problems, gardenErr, rest, c.leaseError())
	return &c.currentRun.report, errors.Join(problems...)
}

// convergeVirtual applies the declarations of the virtual garden, then reconciles the Seeds with
// their Shoots.
func (c *Converger) convergeVirtual(ctx context.Context, d *declarations) error {
	if c.connections.clusters[Virtual] == nil {
		return nil
	}
	seed := apply.Ref{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Seed"}
	if _, err := c.connections.clusters[Virtual].Mapping(ctx, seed.GVK()); err != nil {
		if access.IsMissing(err) && !c.hasVirtualObjects(ctx, d) {
			return nil
		}
		return &apply.FollowsError{Err: fmt.Errorf("declarations of the virtual garden, Seeds and Shoots: not reconciled, because the virtual garden is not ready: %w",
			c.connections.clusters[Virtual].Explain(seed, "read", err))}
	}
	var declared error
	if err := c.applyDeclarations(ctx, Virtual, d); err != nil {
		declared = fmt.Errorf("declarations of the virtual garden: %w", err)
	}
	if ctx.Err() != nil {
		return declared
	}
	if declared == nil {
		declared = c.answerRemovalQuestions(ctx)
	}
	return errors.Join(declared, c.runOperations(ctx, Virtual), c.convergeSeeds(ctx))
}

// convergeGarden reconciles the Garden; it calls ready when the virtual garden can be used,
// possibly before the end.
func (c *Converger) convergeGarden(ctx context.Context, ready func()) error {
	for _, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Garden {
			o.OnTargetReady = ready
			return errors.Join(c.members.fleet.Converge(ctx, []fleet.Member[*convergedOwner]{c.fleetMember(o)})...)
		}
	}
	return nil
}

// convergeSeeds reconciles all Seeds in parallel, each followed by its own Shoots: an unreachable
// seed does not slow others.
func (c *Converger) convergeSeeds(ctx context.Context) error {
	var members []fleet.Member[*convergedOwner]
	for _, o := range c.members.all {
		if o.Input.Owner.Kind != owner.Garden {
			members = append(members, c.fleetMember(o))
		}
	}
	var problems []error
	waiting := map[string][]string{}
	for i, err := range c.members.fleet.Converge(ctx, members) {
		if left := new(fleet.DependencyError); errors.As(err, &left) {
			waiting[left.Dependency] = append(waiting[left.Dependency], members[i].ID)
			continue
		}
		problems = append(problems, err)
	}
	for _, seed := range slices.Sorted(maps.Keys(waiting)) {
		problems = append(problems, &apply.FollowsError{Err: fmt.Errorf("%s: not reconciled, because %s is not", strings.Join(waiting[seed], ", "), seed)})
	}
	return errors.Join(problems...)
}

// setConditionsUnknown sets the conditions of a seed and its Shoots to unknown in the virtual
// garden, unless another process reconciles them.
func (c *Converger) setConditionsUnknown(ctx context.Context, seed *convergedOwner, cause error) {
	if errors.As(cause, new(*LeaseHeldError)) || ctx.Err() != nil {
		return
	}
	for _, o := range c.members.all {
		if o == seed || o.Input.Owner.Kind == owner.Shoot && o.Local == seed.Local {
			c.members.reconciler.MarkUnreconciled(ctx, o.Owner, o.state(), cause)
		}
	}
}

// convergeOwner reconciles one owner. A panic becomes an error of this owner, so that others
// continue: its inputs are untrusted.
func (c *Converger) convergeOwner(ctx context.Context, o *convergedOwner) (err error) {
	defer panics.Catch(&err)
	if err := c.checkDeclarationApplied(o); err != nil {
		return err
	}
	if err := c.loadLiveOwner(ctx, o); err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	_, report, err := c.members.reconciler.Reconcile(ctx, o.Owner, o.state())
	if report != nil {
		c.addOwnerReport(report)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return nil
}

// addOwnerReport adds the result of an owner to the report.
func (c *Converger) addOwnerReport(report *owner.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.currentRun.report.Owners = append(c.currentRun.report.Owners, report)
	c.currentRun.report.Written.AddCounts(report.ChangeCounts)
	c.currentRun.report.Changed = c.currentRun.report.Written.Total()
	c.currentRun.report.Held = append(c.currentRun.report.Held, report.Held...)
}
