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
	"github.com/pergola-dev/pergola/controllers/owner/blocked"
	"github.com/pergola-dev/pergola/controllers/owner/coming"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/controllers/owner/renders"
	"github.com/pergola-dev/pergola/controllers/owner/tally"
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
	// Render holds catalogue, overlays and switches of the landscape.
	Render render.Options
	// Renders are kept for others that reconcile the same owners later; it may be nil.
	Renders *renders.Kept
	Clock   clock.WithTicker
	Gate    permit.Gate
	Judging Judging
	Hooks   Hooks
	// Charts pulls those that Extensions name; nil has none, and what they bring stays as it is.
	Charts *charts.Puller
	// Coming is what plans have seen to be made, by one owner for the next; it may be nil for who
	// plans nothing.
	Coming *coming.Objects
	// Tokens are requested for control planes from when they are reconciled; nil for nobody's.
	Tokens *accesstokens.Keeper
	// Retries says that the process tries again what has failed, which lastOperation tells then.
	Retries bool
	// Gardener identifies this process in status.gardener.
	Gardener gardencorev1beta1.Gardener
	// StepTimeout shortens the timeouts of the flow's steps; they stay as they are when it is zero.
	StepTimeout time.Duration
}

// Judging is how the conditions of owners come about.
type Judging struct {
	Thresholds condition.Thresholds
	// ProgressingThreshold is how long a ManagedResource may be rolling out before care calls it
	// unhealthy; nil is not at all.
	ProgressingThreshold *time.Duration
	// HealthRules are the landscape's own, which go before those of the kinds; nil for none.
	HealthRules health.Rules
	// ExistenceOnly is content with the existence of objects whose kind has no rule.
	ExistenceOnly bool
	// Prometheis gives the way to the servers of a cluster, by its connection, that care asks
	// whether they see what they should; nil: nobody is asked.
	Prometheis func(*rest.Config) prometheus.Reach
	// CareInterval is how often conditions are judged while a reconciliation runs (upstream: 30 s).
	CareInterval time.Duration
}

// Hooks hear what a reconciler does; each may be nil.
type Hooks struct {
	// OnEvent hears about every step.
	OnEvent func(Event)
	// OnObject hears about every object sent.
	OnObject func(owner string, bundle string, r apply.ObjectResult)
	// OnOutcome hears what came of the steps before the status says it: whatever it tells is known
	// by then to those who wait for the status.
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

// Report is what a reconciliation did.
type Report struct {
	Owner      string                        `json:"owner"`
	Nodes      []flow.NodeResult             `json:"nodes"`
	Conditions []gardencorev1beta1.Condition `json:"conditions"`
	// JudgedAt is when the conditions were.
	JudgedAt time.Time            `json:"judgedAt,omitzero"`
	Held     []permit.HeldObjects `json:"held,omitempty"`
	// Notes are about objects that were not dealt with as the inventories say: those that are not
	// ours.
	Notes []string `json:"notes,omitempty"`
	// Changed is how many objects were written; Written says what was done with them.
	Changed int         `json:"changed"`
	Written tally.Tally `json:"written"`
	// TakenUp is the operation that the owner was asked for; nil for none.
	TakenUp *TakenUp `json:"takenUp,omitempty"`
}

func (r *Reconciler) reconcile(ctx context.Context, o *subject) (*Report, error) {
	status := r.newStatus(o)
	defer status.stop()
	refused, err := status.begin(ctx)
	if err != nil {
		return nil, err
	}
	run := &run{reconciler: r, owner: o, status: status, report: &Report{Owner: o.String(), TakenUp: status.takenUp}, patient: true, begun: r.Clock.Now()}
	stopCare := r.careWhile(ctx, o)
	err = errors.Join(panics.Safe(func() error { return run.reconcile(ctx) })(), refused)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		run.watchTheRest(ctx)
	}
	stopCare()
	return run.report, run.conclude(ctx, err, func() error { return r.judgeInTheEnd(ctx, o, run.report) })
}

// conclude writes the outcome, also of a run that was interrupted; but then there is no time to
// judge.
func (r *run) conclude(ctx context.Context, err error, judge func() error) error {
	if lost(ctx) {
		return err
	}
	if r.reconciler.Hooks.OnOutcome != nil {
		r.reconciler.Hooks.OnOutcome(ctx, r.report, err)
	}
	write := r.status.interrupt
	var judged error
	if !errors.Is(ctx.Err(), context.Canceled) {
		write, judged = r.status.finish, judge()
	}
	final, cancel := inTheEnd(ctx)
	defer cancel()
	return errors.Join(err, judged, write(final, err))
}

// judgeInTheEnd judges an owner that was reconciled. That there was no time left for it is no error
// of its own.
func (r *Reconciler) judgeInTheEnd(ctx context.Context, o *subject, report *Report) error {
	final, cancel := inTheEnd(ctx)
	defer cancel()
	conditions, err := r.care(final, o)
	report.Conditions, report.JudgedAt = conditions, r.Clock.Now()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// inTheEnd is a context for what is judged and written after a run. Nobody waits long for a run
// that was stopped, or whose time is over.
func inTheEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := concluding
	if ctx.Err() != nil {
		limit = time.Second
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// concluding is how long the outcome of a run may take to be judged, and again to be written: API
// servers that are busy answer in this time.
const concluding = 15 * time.Second

func (r *Reconciler) giveUp(ctx context.Context, o *subject, cause error) {
	o.note(func(s *State) { s.notJudged(cause) })
	_, _ = r.care(ctx, o)
	status := r.newStatus(o)
	if status.start(ctx) == nil {
		_ = status.finish(ctx, cause)
	}
}

// careWhile judges the conditions now and then until the returned function is called.
func (r *Reconciler) careWhile(ctx context.Context, o *subject) (stop func()) {
	if r.Judging.CareInterval <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	tick := r.Clock.NewTicker(r.Judging.CareInterval)
	done.Go(func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
				// A judgement that could not be made or written is repeated next time, and at the
				// end for good.
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
	owner      *subject
	status     *statusWriter
	report     *Report

	mu sync.Mutex
	// deleted counts the objects that this run has deleted, by cluster.
	deleted map[string]int
	// serving knows whether the API server of a Shoot is served; patient says that one that is may
	// take as long to answer as the step has time.
	serving serving
	patient bool
	// blocked knows why steps are not started.
	blocked blocked.Steps
	// requests are the operations that nodes request, by bundle.
	requests map[string]string
	// round is which one it is of those that rotations of credentials need.
	round rotation.Round
	// repairing is for a run that brings back what was applied, and left what it could not; pending
	// says that it is rendered otherwise since.
	repairing, pending bool
	left               []apply.Ref
	// begun is when the reconciliation was; zero for a repair.
	begun time.Time
}

// reconcile runs the flow, and again as long as a rotation needs it: its steps are reached by one
// way only.
func (r *run) reconcile(ctx context.Context) error {
	if err := r.guard(ctx); err != nil {
		r.owner.note(func(s *State) { s.notJudged(err) })
		return err
	}
	for range mostPasses {
		again, err := r.pass(ctx)
		if err != nil {
			return err
		}
		if !again {
			return errors.Join(r.updateGardenlets(ctx), r.unguard(ctx))
		}
	}
	return fmt.Errorf("the rotation of credentials of %s does not come to an end: it was gone on with %d times", r.owner, mostPasses)
}

// pass goes the way of the flow once.
func (r *run) pass(ctx context.Context) (again bool, err error) {
	result, manager, err := r.prepare(ctx)
	if err != nil {
		r.owner.note(func(s *State) { s.notJudged(err) })
		return false, err
	}
	r.keepTokens()
	r.beginRound()
	definition, err := render.CoveringFlow(r.reconciler.Render.Catalogue, r.owner.Input, result.Bundles)
	if err != nil {
		return false, err
	}
	work := &steps{run: r, rendered: map[string]render.Bundle{}, late: map[string]bool{}}
	for _, b := range result.Bundles {
		work.rendered[b.Name] = b
	}
	for _, c := range result.Components {
		work.late[c.Path] = len(c.Facts) > 0
	}
	err = work.follow(ctx, definition)
	result.Bundles = r.owner.now().latest(result.Bundles)
	if terr := r.tellInstalled(ctx); terr != nil && ctx.Err() == nil {
		err = errors.Join(err, terr)
	}
	if err != nil {
		return false, err
	}
	if err := r.removeOrphans(ctx, result.Bundles); err != nil {
		return false, err
	}
	if err := r.publishRotated(ctx); err != nil {
		return false, err
	}
	if _, err := manager.Cleanup(ctx); err != nil {
		return false, fmt.Errorf("clean up the secrets of %s: %w", r.owner, err)
	}
	return r.rotate(ctx, result)
}

// prepare gathers facts, makes the secrets and renders. Facts of secrets that are there already are
// taken as they are, so that usually one rendering is enough.
func (r *run) prepare(ctx context.Context) (render.Result, *secrets.Manager, error) {
	o := r.owner
	if err := r.ensureNamespace(ctx); err != nil {
		return render.Result{}, nil, err
	}
	known, err := r.reconciler.facts(ctx, o)
	if err != nil {
		return render.Result{}, nil, err
	}
	result, err := r.reconciler.renderWith(ctx, o, known)
	if err != nil {
		return result, nil, err
	}
	manager, made, err := r.reconciler.secrets(ctx, o, result)
	if err != nil {
		return result, nil, err
	}
	if err := r.publishAccess(ctx, manager, result); err != nil {
		return result, nil, err
	}
	if err := r.nameKubeconfig(ctx, made); err != nil {
		return result, nil, err
	}
	guessed := known.Secrets
	known.Secrets = made
	if !facts.SameSecrets(guessed, made) {
		if result, err = r.reconciler.renderWith(ctx, o, known); err != nil {
			return result, nil, err
		}
	}
	if len(result.Bundles) == 0 {
		return result, nil, fmt.Errorf("%s rendered no bundle at all: nothing is applied and nothing removed", o)
	}
	o.note(func(s *State) {
		o.Input.Facts = known
		s.rendered(result.Bundles)
	})
	return result, manager, nil
}

func (r *Reconciler) renderWith(ctx context.Context, o *subject, facts render.Facts) (render.Result, error) {
	in, err := o.withCredentials(o.Input)
	if err != nil {
		return render.Result{}, err
	}
	in.Facts = facts
	result, err := panics.Detached(ctx, func() (render.Result, error) { return r.Renders.Render(in, r.Render) })
	if err != nil {
		return result, fmt.Errorf("render %s: %w", o, err)
	}
	return o.withCopies(result)
}

func (r *run) event(e flow.Event) {
	e = r.blocked.Event(e)
	e.Progress.Percent = r.round.Percent(e.Progress.Percent)
	r.status.progress(e, r.round.String())
	if r.reconciler.Hooks.OnEvent == nil {
		return
	}
	out := Event{Owner: r.owner.String(), Node: e.ID, State: e.State, Message: e.Message, Progress: e.Progress, At: e.At}
	if e.Err != nil {
		out.Error = strings.Join(Problems(e.Err), "; ")
	}
	r.reconciler.Hooks.OnEvent(out)
}

// cluster of a bundle by its role.
func (o *Owner) cluster(role string) (*apply.Cluster, error) {
	switch role {
	case render.ClusterRuntime, render.ClusterSeed:
		return o.Local, nil
	case targets[o.Input.Owner.Kind]:
		if o.Target != nil {
			return o.Target, nil
		}
	}
	return nil, fmt.Errorf("%s has no access to a %s cluster", o, role)
}

// ClusterName is the name of the cluster a bundle goes to.
func (o *Owner) ClusterName(b render.Bundle) string {
	if c, err := o.cluster(b.Cluster); err == nil {
		return c.Name()
	}
	return b.Cluster
}

// resourceManager gives the reconciler that is responsible for a bundle's ManagedResource.
func (r *Reconciler) resourceManager(o *subject, b render.Bundle) (*managedresource.Reconciler, error) {
	target, err := o.cluster(b.Cluster)
	if err != nil {
		return nil, err
	}
	return &managedresource.Reconciler{
		Engine: r.Engine, Source: o.Local, Target: target, Class: b.Delivery.Class, Clock: r.Clock,
		Judging: managedresource.Judging{Rules: r.Judging.HealthRules, ExistenceOnly: r.Judging.ExistenceOnly},
	}, nil
}

// judgeOf looks at the objects of a cluster with the rules of the landscape.
func (r *Reconciler) judgeOf(c *apply.Cluster) managedresource.Judge {
	return managedresource.Judge{Cluster: c, Rules: r.Judging.HealthRules, ExistenceOnly: r.Judging.ExistenceOnly, Clock: r.Clock}
}
