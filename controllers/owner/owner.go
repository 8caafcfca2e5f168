package owner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// Owner is one Garden, Seed or Shoot and where its parts live. It is a value: what runs leave behind is in a State, which the caller keeps from one call to the
// next. Calls for one owner follow each other.
type Owner struct {
	// Input is the declaration with defaults. Runs complete it with facts.
	Input render.Input
	// Ref is the object whose status is written, on Home.
	Ref  apply.Ref
	Home *apply.Cluster
	// Local is the cluster the components run on: the runtime cluster or the seed.
	Local *apply.Cluster
	// Target is the API server that the control plane of a Garden or Shoot serves: the bundles for the virtual garden, or for the Shoot, go to it.
	Target *apply.Cluster
	// Known gives the live object of Ref where somebody watches it anyway, nil while it is not known: then no request is made to read its
	// status. Nil: it is read from Home.
	Known func() *unstructured.Unstructured
	// OnTargetReady is called once in every reconciliation that gets there: when all steps that fill Target have
	// become healthy, while others may still run. It may be nil.
	OnTargetReady func()
	// OnState hears each State that a call comes to, the last one being what it returns. It is for those who read it meanwhile, must not block, and may be nil.
	OnState func(State)
}

func (o Owner) String() string { return o.Input.Owner.String() }

// ControlPlane is the namespace of its components.
func (o Owner) ControlPlane() string { return o.Input.Owner.ControlPlaneNamespace }

// Reconcile runs the whole way for one owner: secrets, facts, render, flow, clean-up, status.
func (r *Reconciler) Reconcile(ctx context.Context, o Owner, s State) (State, *Report, error) {
	at := o.from(s)
	report, err := r.reconcile(ctx, at)
	return at.now(), report, err
}

// Delete takes down an owner that is being deleted, in the order of its flow, and lets it go in the end. Problems are in the status. The next call, of any
// process, continues: all that is left is in inventories.
func (r *Reconciler) Delete(ctx context.Context, o Owner, s State) (State, *Report, error) {
	at := o.from(s)
	report, err := r.delete(ctx, at)
	return at.now(), report, err
}

// Repair brings back the objects of one set as they were applied last, by the name the engine reported drift for. It says false when the set does not belong
// to this owner. What was not applied yet stays so, in whatever order and time it is to be; nothing is told to go.
func (r *Reconciler) Repair(ctx context.Context, o Owner, s State, setID string) (after State, done Repaired, found bool, err error) {
	at := o.from(s)
	done, found, err = r.repair(ctx, at, setID)
	return at.now(), done, found, err
}

// Care judges every bundle and writes the conditions of the owner, with thresholds. It works from
// the live cache; a condition that did not change is not written.
func (r *Reconciler) Care(ctx context.Context, o Owner, s State) (State, []gardencorev1beta1.Condition, error) {
	at := o.from(s)
	conditions, err := r.care(ctx, at)
	return at.now(), conditions, err
}

// GiveUp writes into the status that the owner could not be reconciled, and that its state is not known. The cause is
// reported by the caller; that it could not be written would be no news.
func (r *Reconciler) GiveUp(ctx context.Context, o Owner, s State, cause error) State {
	at := o.from(s)
	r.giveUp(ctx, at, cause)
	return at.now()
}

// FinishRemovals applies the bundles again of which everything is gone that was still being deleted, so that inventories, and what
// ManagedResources say, do not go on naming it. It costs nothing while nothing has gone.
func (r *Reconciler) FinishRemovals(ctx context.Context, o Owner, s State) (State, error) {
	at := o.from(s)
	err := r.finishRemovals(ctx, at, at.Bundles()...)
	return at.now(), err
}

// ApplyWaiting applies what waits for somebody to serve the API server of a Shoot, or to answer webhooks, once somebody does. It costs nothing where
// nothing waits, and else a request for each Deployment that is waited for.
func (r *Reconciler) ApplyWaiting(ctx context.Context, o Owner, s State) (State, error) {
	at := o.from(s)
	err := r.applyWaiting(ctx, at)
	return at.now(), err
}

// Inspect judges an owner now and writes nothing, neither conditions nor those of ManagedResources. It knows no
// thresholds: what is broken is False at once, what is rolling out is Progressing. When the components cannot be looked
// at, their conditions are Unknown and the error says why.
func (r *Reconciler) Inspect(ctx context.Context, o Owner, s State) (*Inspection, error) {
	return r.inspect(ctx, o.from(s))
}

// Plan says what Reconcile would change, by the engine's own dry run, and how many objects stay as they are. It writes nothing and
// generates no secret: facts that are not known yet stay symbolic.
func (r *Reconciler) Plan(ctx context.Context, o Owner, s State) (after State, items []change.Item, unchanged int, err error) {
	at := o.from(s)
	items, unchanged, err = r.plan(ctx, at)
	return at.now(), items, unchanged, err
}

// PlanSecrets says what the components of an owner would get from the secrets manager. Nothing is stored.
func (r *Reconciler) PlanSecrets(ctx context.Context, o Owner, s State) ([]PlannedSecret, error) {
	return r.planSecrets(ctx, o.from(s))
}

// SetOfManaged gives the set that a ManagedResource of an owner is written by; empty when it is not one of its bundles.
func (r *Reconciler) SetOfManaged(o Owner, s State, cluster string, ref apply.Ref) string {
	return r.setOfManaged(o.from(s), cluster, ref)
}
