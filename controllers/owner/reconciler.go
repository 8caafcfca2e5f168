// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/owner/blockreasons"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/controllers/owner/prerequisites"
	"github.com/pergola-dev/pergola/controllers/owner/rendercache"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/prometheus"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// Reconciler converges owners.
type Reconciler struct {
	Engine *apply.Engine
	// Render has the catalogue, overlays and switches of the landscape.
	Render render.Options
	// RenderCache caches renderings for later reconcilers of the same owners; it may be nil.
	RenderCache       *rendercache.Cache
	Clock             clock.WithTicker
	Gate              permit.Gate
	ConditionSettings ConditionSettings
	Hooks             Hooks
	// Charts pulls the charts of Extensions; if nil, their bundles stay unchanged.
	Charts *charts.Puller
	// Prerequisites has the kinds and namespaces that plans of earlier owners create; it may be nil
	// without plans.
	Prerequisites *prerequisites.PlannedPrerequisites
	// Tokens are renewed for control planes from their first reconciliation on; they are nil for
	// none.
	Tokens *accesstokens.Requester
	// RetriesFailures means that the process retries failures, which lastOperation reports.
	RetriesFailures bool
	// Gardener identifies this process in status.gardener.
	Gardener gardencorev1beta1.Gardener
	// StepTimeout shortens the timeouts of the flow's steps; zero changes nothing.
	StepTimeout time.Duration
}

// ConditionSettings has the settings for the conditions of owners.
type ConditionSettings struct {
	Thresholds condition.Thresholds
	// ProgressingThreshold is how long a ManagedResource may roll out before care reports it as
	// unhealthy; nil disables the limit.
	ProgressingThreshold *time.Duration
	// HealthRules are the landscape's rules, which precede those of the kinds; they are nil for
	// none.
	HealthRules health.Rules
	// ExistenceOnly accepts objects whose kind has no rule if they exist.
	ExistenceOnly bool
	// PrometheusAccess returns the access to a cluster's Prometheus servers, whose health checks
	// care reads; nil disables that.
	PrometheusAccess func(*rest.Config) prometheus.ServerAccess
	// CareInterval is the time between health checks during a reconciliation (upstream: 30 s).
	CareInterval time.Duration
}

// Hooks are called by a reconciler; each may be nil.
type Hooks struct {
	// OnEvent is called for every step.
	OnEvent func(Event)
	// OnObject is called for every applied object.
	OnObject func(owner string, bundle string, r apply.ObjectResult)
	// OnOutcome is called with the result of the steps before the status has it, so that clients
	// that wait for the status see its effects.
	OnOutcome func(ctx context.Context, report *Report, err error)
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

// Report is the result of a reconciliation.
type Report struct {
	Owner      string                        `json:"owner"`
	Nodes      []flow.NodeResult             `json:"nodes"`
	Conditions []gardencorev1beta1.Condition `json:"conditions"`
	// JudgedAt is the time of the conditions.
	JudgedAt time.Time            `json:"judgedAt,omitzero"`
	Held     []permit.HeldObjects `json:"held,omitempty"`
	// Notes are about inventory objects that are not ours and were ignored.
	Notes []string `json:"notes,omitempty"`
	// ChangedObjects is the number of written objects; ChangeCounts counts them by action.
	ChangedObjects int                       `json:"changed"`
	ChangeCounts   changecounts.ChangeCounts `json:"written"`
	// RequestedOperation is the requested operation; it is nil for none.
	RequestedOperation *RequestedOperation `json:"takenUp,omitempty"`
}

func (r *Reconciler) reconcile(ctx context.Context, o *ownerSession) (*Report, error) {
	status := r.newStatus(o)
	defer status.stop()
	refused, err := status.startReconcile(ctx)
	if err != nil {
		return nil, err
	}
	run := &run{reconciler: r, owner: o, status: status, report: &Report{Owner: o.String(), RequestedOperation: status.requestedOperation}, waitForAPIServer: true, startTime: r.Clock.Now()}
	stopCare := r.startPeriodicCare(ctx, o)
	err = errors.Join(panics.AsError(func() error { return run.reconcile(ctx) })(), refused)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		run.trackUnprocessedBundles(ctx)
	}
	stopCare()
	return run.report, run.writeOutcome(ctx, err, func() error { return r.judgeAfterRun(ctx, o, run.report) })
}

// writeOutcome writes the outcome. It judges health only if the run was not interrupted.
func (r *run) writeOutcome(ctx context.Context, err error, judge func() error) error {
	if isLeaseLost(ctx) {
		return err
	}
	if r.reconciler.Hooks.OnOutcome != nil {
		r.reconciler.Hooks.OnOutcome(ctx, r.report, err)
	}
	write := r.status.writeInterrupted
	var judged error
	if !errors.Is(ctx.Err(), context.Canceled) {
		write, judged = r.status.finish, judge()
	}
	final, cancel := finalContext(ctx)
	defer cancel()
	return errors.Join(err, judged, write(final, err))
}

// judgeAfterRun judges a reconciled owner. It ignores the error if the time is over.
func (r *Reconciler) judgeAfterRun(ctx context.Context, o *ownerSession, report *Report) error {
	final, cancel := finalContext(ctx)
	defer cancel()
	conditions, err := r.care(final, o)
	report.Conditions, report.JudgedAt = conditions, r.Clock.Now()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// finalContext returns a context for the judgement and the outcome of a run. It is short if the run
// was stopped or timed out.
func finalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := finalizeTimeout
	if ctx.Err() != nil {
		limit = time.Second
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// finalizeTimeout is the time limit for judging a run, and again for writing its outcome: busy API
// servers answer in this time.
const finalizeTimeout = 15 * time.Second

func (r *Reconciler) writeUnreconciled(ctx context.Context, o *ownerSession, cause error) {
	o.updateState(func(s *State) { s.setUnknown(cause) })
	_, _ = r.care(ctx, o)
	status := r.newStatus(o)
	if status.start(ctx) == nil {
		_ = status.finish(ctx, cause)
	}
}

// startPeriodicCare judges the conditions every CareInterval until stop is called.
func (r *Reconciler) startPeriodicCare(ctx context.Context, o *ownerSession) (stop func()) {
	if r.ConditionSettings.CareInterval <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	tick := r.Clock.NewTicker(r.ConditionSettings.CareInterval)
	done.Go(func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
				// The next judgement replaces a failed one, and the last one reports errors.
				_, _ = r.care(ctx, o)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// run is one reconciliation.
type run struct {
	reconciler *Reconciler
	owner      *ownerSession
	status     *statusWriter
	report     *Report

	mu sync.Mutex
	// deletionsByCluster counts the objects that this run has deleted, by cluster.
	deletionsByCluster map[string]int
	// servingCache knows whether the API server of a Shoot is served. waitForAPIServer allows a
	// served API server the time of the step to answer.
	serving          servingCache
	waitForAPIServer bool
	// blockReasons knows why steps are not started.
	blockReasons blockreasons.BlockReasons
	// requests are the operations that nodes request, by bundle.
	requests map[string]string
	// round is the current round of the rotations.
	round rotation.Round
	// isRepair means that the run restores applied objects; unrepaired are those that it could not
	// restore. hasNewRendering means that a newer rendering is not applied yet.
	isRepair, hasNewRendering bool
	unrepaired                []apply.Ref
	// startTime is the start of the reconciliation; it is zero for a repair.
	startTime time.Time
}

// reconcile runs the flow, and repeats it while a rotation needs more passes.
func (r *run) reconcile(ctx context.Context) error {
	if err := r.addFinalizers(ctx); err != nil {
		r.owner.updateState(func(s *State) { s.setUnknown(err) })
		return err
	}
	for range maxPasses {
		again, err := r.runFlowOnce(ctx)
		if err != nil {
			return err
		}
		if !again {
			return errors.Join(r.updateGardenlets(ctx), r.removeFinalizers(ctx))
		}
	}
	return fmt.Errorf("the rotation of credentials of %s did not finish after %d passes", r.owner, maxPasses)
}

// runFlowOnce runs the flow once.
func (r *run) runFlowOnce(ctx context.Context) (again bool, err error) {
	result, manager, err := r.prepare(ctx)
	if err != nil {
		r.owner.updateState(func(s *State) { s.setUnknown(err) })
		return false, err
	}
	r.startTokenRenewal()
	r.beginRound()
	definition, err := render.ReconcileFlow(r.reconciler.Render.Catalogue, r.owner.Input, result.Bundles)
	if err != nil {
		return false, err
	}
	work := &flowSteps{run: r, rendered: map[string]render.Bundle{}, componentsWithLateFacts: map[string]bool{}}
	for _, b := range result.Bundles {
		work.rendered[b.Name] = b
	}
	for _, c := range result.Components {
		work.componentsWithLateFacts[c.Path] = len(c.Facts) > 0
	}
	err = work.runFlow(ctx, definition)
	result.Bundles = r.owner.currentState().latestBundles(result.Bundles)
	if terr := r.writeInstalledConditions(ctx); terr != nil && ctx.Err() == nil {
		err = errors.Join(err, terr)
	}
	if err != nil {
		return false, err
	}
	if err := r.removeOrphans(ctx, result.Bundles); err != nil {
		return false, err
	}
	if err := r.publishRotatedAccess(ctx); err != nil {
		return false, err
	}
	if _, err := manager.Cleanup(ctx); err != nil {
		return false, fmt.Errorf("clean up the secrets of %s: %w", r.owner, err)
	}
	return r.advanceRotations(ctx, result)
}

// prepare reads facts, makes the secrets and renders. It reuses the facts of existing secrets, so
// usually one rendering is enough.
func (r *run) prepare(ctx context.Context) (render.Result, *secrets.Manager, error) {
	o := r.owner
	if err := r.ensureNamespace(ctx); err != nil {
		return render.Result{}, nil, err
	}
	known, err := r.reconciler.readFacts(ctx, o)
	if err != nil {
		return render.Result{}, nil, err
	}
	result, err := r.reconciler.renderWith(ctx, o, known)
	if err != nil {
		return result, nil, err
	}
	manager, made, err := r.reconciler.generateSecrets(ctx, o, result)
	if err != nil {
		return result, nil, err
	}
	if err := r.publishAccess(ctx, manager, result); err != nil {
		return result, nil, err
	}
	if err := r.annotateGenericKubeconfig(ctx, made); err != nil {
		return result, nil, err
	}
	guessed := known.Secrets
	known.Secrets = made
	if !facts.HasSameSecrets(guessed, made) {
		if result, err = r.reconciler.renderWith(ctx, o, known); err != nil {
			return result, nil, err
		}
	}
	if len(result.Bundles) == 0 {
		return result, nil, fmt.Errorf("%s rendered no bundle: nothing is applied, and nothing is removed", o)
	}
	o.updateState(func(s *State) {
		o.Input.Facts = known
		s.setBundles(result.Bundles)
	})
	return result, manager, nil
}

func (r *Reconciler) renderWith(ctx context.Context, o *ownerSession, facts render.Facts) (render.Result, error) {
	in, err := o.withCredentials(o.Input)
	if err != nil {
		return render.Result{}, err
	}
	in.Facts = facts
	result, err := panics.RunDetached(ctx, func() (render.Result, error) { return r.RenderCache.Render(in, r.Render) })
	if err != nil {
		return result, fmt.Errorf("render %s: %w", o, err)
	}
	return o.withReferenceCopies(result)
}

func (r *run) reportEvent(e flow.Event) {
	e = r.blockReasons.WithReason(e)
	e.Progress.Percent = r.round.Percent(e.Progress.Percent)
	r.status.recordProgress(e, r.round.String())
	if r.reconciler.Hooks.OnEvent == nil {
		return
	}
	out := Event{Owner: r.owner.String(), Node: e.ID, State: e.State, Message: e.Message, Progress: e.Progress, At: e.At}
	if e.Err != nil {
		out.Error = strings.Join(apply.Problems(e.Err), "; ")
	}
	r.reconciler.Hooks.OnEvent(out)
}

// clusterForRole returns the cluster of a bundle by its role.
func (o *Owner) clusterForRole(role string) (*apply.Cluster, error) {
	switch role {
	case render.ClusterRuntime, render.ClusterSeed:
		return o.Local, nil
	case targetRoles[o.Input.Owner.Kind]:
		if o.Target != nil {
			return o.Target, nil
		}
	}
	return nil, fmt.Errorf("%s has no access to a %s cluster", o, role)
}

// ClusterName returns the name of a bundle's cluster.
func (o *Owner) ClusterName(b render.Bundle) string {
	if c, err := o.clusterForRole(b.Cluster); err == nil {
		return c.Name()
	}
	return b.Cluster
}

// resourceManager returns the reconciler of a bundle's ManagedResource.
func (r *Reconciler) resourceManager(o *ownerSession, b render.Bundle) (*managedresource.Reconciler, error) {
	target, err := o.clusterForRole(b.Cluster)
	if err != nil {
		return nil, err
	}
	return &managedresource.Reconciler{
		Engine: r.Engine, Source: o.Local, Target: target, Class: b.Delivery.Class, Clock: r.Clock,
		HealthOptions: managedresource.HealthOptions{Rules: r.ConditionSettings.HealthRules, ExistenceOnly: r.ConditionSettings.ExistenceOnly},
	}, nil
}

// judgeForCluster judges the objects of a cluster with the rules of the landscape.
func (r *Reconciler) judgeForCluster(c *apply.Cluster) managedresource.Judge {
	return managedresource.Judge{Cluster: c, Rules: r.ConditionSettings.HealthRules, ExistenceOnly: r.ConditionSettings.ExistenceOnly, Clock: r.Clock}
}
