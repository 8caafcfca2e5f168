package owner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/managedresource"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// Owner is one Garden, Seed or Shoot and where its parts live.
type Owner struct {
	// Input is the declaration with defaults; Facts are filled in by the reconciler.
	Input render.Input
	// Ref is the object whose status is written, on Home.
	Ref  apply.Ref
	Home *apply.Cluster
	// Local is the cluster the components run on: the runtime cluster or the seed.
	Local *apply.Cluster
	// Target is the API server that a Garden's virtual bundles go to.
	Target *apply.Cluster

	mu      sync.Mutex
	bundles []render.Bundle
	// applied holds the bundles whose last apply succeeded.
	applied map[string]bool
}

func (o *Owner) String() string { return o.Input.Owner.String() }

// Bundles of the last rendering.
func (o *Owner) Bundles() []render.Bundle {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]render.Bundle(nil), o.bundles...)
}

// Reconciler converges owners.
type Reconciler struct {
	Engine *apply.Engine
	// Render holds catalogue, overlays and switches of the landscape.
	Render     render.Options
	Clock      clock.WithTicker
	Thresholds condition.Thresholds
	Gate       plan.Gate
	// Gardener identifies this process in status.gardener.
	Gardener gardencorev1beta1.Gardener
	// OnEvent hears about every step; it may be nil.
	OnEvent func(Event)
	// OnObject hears about every object sent.
	OnObject func(owner string, bundle string, r apply.ObjectResult)
}

// Event is one step of an owner's flow.
type Event struct {
	Owner    string        `json:"owner"`
	Node     string        `json:"node"`
	State    flow.State    `json:"state"`
	Message  string        `json:"message,omitempty"`
	Error    string        `json:"error,omitempty"`
	Progress flow.Progress `json:"progress"`
	At       time.Time     `json:"at"`
}

// Report is what a reconciliation did.
type Report struct {
	Owner      string                        `json:"owner"`
	Nodes      []flow.NodeResult             `json:"nodes"`
	Conditions []gardencorev1beta1.Condition `json:"conditions"`
	Held       []apply.Held                  `json:"held,omitempty"`
	// Approval is the id that lets the held deletions pass.
	Approval string `json:"approval,omitempty"`
	// Changed counts the objects that were written.
	Changed int `json:"changed"`
}

// Reconcile runs the whole way for one owner: secrets, facts, render, flow, clean-up, status.
func (r *Reconciler) Reconcile(ctx context.Context, o *Owner) (*Report, error) {
	status := r.newStatus(o)
	if err := status.start(ctx); err != nil {
		return nil, err
	}
	run := &run{Reconciler: r, owner: o, status: status, report: &Report{Owner: o.String()}}
	err := run.reconcile(ctx)
	// The outcome is written even when the run was interrupted.
	final, cancel := context.WithTimeout(context.WithoutCancel(ctx), 1500*time.Millisecond)
	defer cancel()
	conditions, careErr := r.Care(final, o)
	run.report.Conditions = conditions
	if ctx.Err() != nil {
		careErr = nil
	}
	return run.report, errors.Join(err, careErr, status.finish(final, err))
}

// run is one reconciliation.
type run struct {
	*Reconciler
	owner  *Owner
	status *statusWriter
	report *Report

	mu      sync.Mutex
	deleted map[string]int
}

func (r *run) reconcile(ctx context.Context) error {
	if err := r.ensureNamespace(ctx); err != nil {
		return err
	}
	facts, err := r.facts(ctx, r.owner)
	if err != nil {
		return err
	}
	manager, err := r.secrets(ctx, r.owner, &facts)
	if err != nil {
		return err
	}
	r.owner.Input.Facts = facts
	result, err := render.Render(r.owner.Input, r.Render)
	if err != nil {
		return fmt.Errorf("render %s: %w", r.owner, err)
	}
	if len(result.Bundles) == 0 {
		return fmt.Errorf("%s rendered no bundle at all: nothing is applied and nothing removed", r.owner)
	}
	r.owner.mu.Lock()
	r.owner.bundles, r.owner.applied = result.Bundles, map[string]bool{}
	r.owner.mu.Unlock()

	definition, err := render.LoadFlow(r.Render.Catalogue, "reconcile", r.owner.Input)
	if err != nil {
		return err
	}
	if err := definition.Cover(result.Bundles); err != nil {
		return err
	}
	graph := r.graph(definition, result)
	outcome, err := flow.Run(ctx, graph, flow.Options{Clock: r.Clock, OnEvent: r.event})
	if outcome != nil {
		r.report.Nodes = outcome.Nodes
	}
	if err != nil {
		return err
	}
	if err := r.removeOrphans(ctx, result.Bundles); err != nil {
		return err
	}
	if _, err := manager.Cleanup(ctx); err != nil {
		return fmt.Errorf("clean up the secrets of %s: %w", r.owner, err)
	}
	return nil
}

func (r *run) event(e flow.Event) {
	r.status.progress(e)
	if r.OnEvent == nil {
		return
	}
	out := Event{Owner: r.owner.String(), Node: e.ID, State: e.State, Message: e.Message, Progress: e.Progress, At: e.At}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	r.OnEvent(out)
}

// cluster of a bundle by its role.
func (o *Owner) cluster(role string) (*apply.Cluster, error) {
	switch role {
	case render.ClusterRuntime, render.ClusterSeed:
		return o.Local, nil
	case render.ClusterVirtual:
		if o.Target != nil {
			return o.Target, nil
		}
	}
	return nil, fmt.Errorf("%s has no access to a %s cluster", o, role)
}

// resourceManager gives the reconciler that is responsible for a bundle's ManagedResource.
func (r *Reconciler) resourceManager(o *Owner, b render.Bundle) (*managedresource.Reconciler, error) {
	target, err := o.cluster(b.Cluster)
	if err != nil {
		return nil, err
	}
	return &managedresource.Reconciler{
		Engine: r.Engine, Source: o.Local, Target: target, Class: b.Delivery.Class, Clock: r.Clock,
	}, nil
}
