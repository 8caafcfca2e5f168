package owner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// Owner is one Garden, Seed or Shoot and where its parts live. It is a value: runs leave a State
// behind, which the caller keeps from one call to the next. Calls for one owner follow each other;
// only SetOfManaged may run beside others.
type Owner struct {
	// Input is the declaration with defaults. Runs complete it with facts.
	Input render.Input
	// Ref is the object whose status is written, on Home.
	Ref  apply.Ref
	Home *apply.Cluster
	// Local is the cluster the components run on: the runtime cluster or the seed.
	Local *apply.Cluster
	// Target is the API server that the control plane of a Garden or Shoot serves: the bundles for
	// the virtual garden, or for the Shoot, go to it.
	Target *apply.Cluster
	// Known gives the live object of Ref where somebody watches it anyway, nil while it is not
	// known: then no request is made to read its status. Nil: it is read from Home.
	Known func() *unstructured.Unstructured
	// OnTargetReady is called in each pass of a Garden's flow when every step with bundles for the
	// virtual garden is healthy, while others may still run. A rotation of credentials has several
	// passes. It may be nil.
	OnTargetReady func()
	// OnState is called with each State that a call comes to; the last one is the one that it
	// returns. It is for callers that read the State meanwhile. It must not block, and may be nil.
	OnState func(State)
}

func (o Owner) String() string { return o.Input.Owner.String() }

// ControlPlane is the namespace of its components.
func (o Owner) ControlPlane() string { return o.Input.Owner.ControlPlaneNamespace }

// Reconcile gathers facts, renders, makes secrets, renders again if they changed, runs the flow,
// removes orphans and judges. It writes the status while it runs and at the end.
func (r *Reconciler) Reconcile(ctx context.Context, o Owner, s State) (State, *Report, error) {
	at := o.from(s)
	report, err := r.reconcile(ctx, at)
	return at.end(), report, err
}

// Delete takes down an owner that is being deleted, in the order of its flow, and lets it go in the
// end. Problems of the flow are in the status. The next call, of any process, continues: all that
// is left is in inventories. Only the Garden has a caller yet.
func (r *Reconciler) Delete(ctx context.Context, o Owner, s State) (State, *Report, error) {
	at := o.from(s)
	report, err := r.delete(ctx, at)
	return at.end(), report, err
}

// Repair restores the objects of one set, by the name that the engine reported drift for, to what
// was applied last. found is false if the set belongs to another owner. It applies nothing new and
// deletes nothing.
func (r *Reconciler) Repair(ctx context.Context, o Owner, s State, setID string) (after State, done Repaired, found bool, err error) {
	at := o.from(s)
	done, found, err = r.repair(ctx, at, setID)
	return at.end(), done, found, err
}

// Care judges every bundle and writes the conditions of the owner, with thresholds; a condition
// that did not change is not written. It judges objects by the cache of the cluster, and asks API
// servers for /healthz. It restores the Secret with the access to an API server where that is
// missing.
func (r *Reconciler) Care(ctx context.Context, o Owner, s State) (State, []gardencorev1beta1.Condition, error) {
	at := o.from(s)
	conditions, err := r.care(ctx, at)
	return at.end(), conditions, err
}

// GiveUp writes into the status that the owner could not be reconciled, and that its state is not
// known. The caller reports the cause. GiveUp ignores errors of the write.
func (r *Reconciler) GiveUp(ctx context.Context, o Owner, s State, cause error) State {
	at := o.from(s)
	r.giveUp(ctx, at, cause)
	return at.end()
}

// FinishRemovals applies a bundle again once all objects that were leaving it are gone, so that
// inventories and ManagedResources list them no longer. It costs nothing while nothing has gone.
func (r *Reconciler) FinishRemovals(ctx context.Context, o Owner, s State) (State, error) {
	at := o.from(s)
	err := r.finishRemovals(ctx, at, at.Bundles()...)
	return at.end(), err
}

// ApplyWaiting applies what waits for somebody to serve the API server of a Shoot, or to answer
// webhooks, once somebody does. It costs nothing where nothing waits, and otherwise a request for
// the pods of each Deployment that bundles wait for.
func (r *Reconciler) ApplyWaiting(ctx context.Context, o Owner, s State) (State, error) {
	at := o.from(s)
	err := r.applyWaiting(ctx, at)
	return at.end(), err
}

// Inspect judges an owner now and writes nothing, neither conditions nor those of ManagedResources.
// It knows no thresholds: a broken component is False at once, one that rolls out is Progressing.
// When the components cannot be read, their conditions are Unknown and the error says why.
func (r *Reconciler) Inspect(ctx context.Context, o Owner, s State) (*Inspection, error) {
	return r.inspect(ctx, o.from(s))
}

// Plan says what Reconcile would change, by the engine's own dry run, and how many objects stay as
// they are. It writes nothing and generates no secret: facts that are not known yet stay symbolic.
func (r *Reconciler) Plan(ctx context.Context, o Owner, s State) (after State, items []change.Item, unchanged int, err error) {
	at := o.from(s)
	items, unchanged, err = r.plan(ctx, at)
	return at.end(), items, unchanged, err
}

// PlanSecrets says what the components of an owner would get from the secrets manager. Nothing is
// stored.
func (r *Reconciler) PlanSecrets(ctx context.Context, o Owner, s State) ([]PlannedSecret, error) {
	return r.planSecrets(ctx, o.from(s))
}

// SetOfManaged gives the set that a ManagedResource of an owner is written by; empty when it is not
// one of its bundles.
func (r *Reconciler) SetOfManaged(o Owner, s State, cluster string, ref apply.Ref) string {
	return r.setOfManaged(o.from(s), cluster, ref)
}
