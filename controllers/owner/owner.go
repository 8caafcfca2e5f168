// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// Owner is one Garden, Seed or Shoot with its clusters. It is a value: calls return a State, which
// the caller passes to the next call. Calls for one owner are sequential; only SetOfManaged may run
// concurrently.
type Owner struct {
	// Input is the declaration with defaults. Runs add facts.
	Input render.Input
	// Ref is the object whose status is written, on Home.
	Ref           apply.Ref
	ObjectCluster *apply.Cluster
	// Local is the cluster the components run on: the runtime cluster or the seed.
	Local *apply.Cluster
	// Target is the API server that the control plane of a Garden or Shoot serves. It gets the
	// bundles for the virtual garden or the Shoot.
	Target *apply.Cluster
	// CachedObject returns the live object of Ref from an existing watch, or nil while it is
	// unknown. It replaces requests for the status. If Known is nil, Home is read.
	CachedObject func() *unstructured.Unstructured
	// OnTargetReady is called in each pass of a Garden's flow once all steps with bundles for the
	// virtual garden are healthy. Others may still run. A rotation of credentials has several
	// passes. It may be nil.
	OnTargetReady func()
	// OnState is called with each new State of a call; the last one is also returned. It must not
	// block, and may be nil.
	OnState func(State)
}

func (o Owner) String() string { return o.Input.Owner.String() }

// ControlPlane returns the namespace of the owner's components.
func (o Owner) ControlPlane() string { return o.Input.Owner.ControlPlaneNamespace }

// Reconcile reads facts, renders, makes secrets, renders again if they changed, runs the flow,
// removes orphans and judges health. It writes the status during the run and at the end.
func (r *Reconciler) Reconcile(ctx context.Context, o Owner, s State) (State, *Report, error) {
	at := o.newSession(s)
	report, err := r.reconcile(ctx, at)
	return at.finish(), report, err
}

// Delete deletes an owner with a deletion timestamp in the order of its flow, and then removes its
// finalizers. Errors of the flow are in the status. The next call, of any process, continues:
// inventories have the remaining objects. Only the Garden has a caller yet.
func (r *Reconciler) Delete(ctx context.Context, o Owner, s State) (State, *Report, error) {
	at := o.newSession(s)
	report, err := r.delete(ctx, at)
	return at.finish(), report, err
}

// Repair restores the objects of one set, by the name in the engine's drift event, to the last
// applied state. found is false if the set belongs to another owner. It applies nothing new and
// deletes nothing.
func (r *Reconciler) Repair(ctx context.Context, o Owner, s State, setID string) (after State, done RepairResult, found bool, err error) {
	at := o.newSession(s)
	done, found, err = r.repair(ctx, at, setID)
	return at.finish(), done, found, err
}

// Care judges every bundle and writes changed conditions of the owner, with thresholds. It judges
// objects by the cache of the cluster, and requests /healthz from API servers. It restores a
// missing access Secret of an API server.
func (r *Reconciler) Care(ctx context.Context, o Owner, s State) (State, []gardencorev1beta1.Condition, error) {
	at := o.newSession(s)
	conditions, err := r.care(ctx, at)
	return at.finish(), conditions, err
}

// MarkUnreconciled writes into the status that the owner could not be reconciled and that its state
// is unknown. The caller reports the cause. MarkUnreconciled ignores errors of the write.
func (r *Reconciler) MarkUnreconciled(ctx context.Context, o Owner, s State, cause error) State {
	at := o.newSession(s)
	r.writeUnreconciled(ctx, at, cause)
	return at.finish()
}

// FinishRemovals applies a bundle again once its terminating objects no longer exist, so that
// inventories and ManagedResources stop listing them. It makes no requests before that.
func (r *Reconciler) FinishRemovals(ctx context.Context, o Owner, s State) (State, error) {
	at := o.newSession(s)
	err := r.finishRemovals(ctx, at, at.Bundles()...)
	return at.finish(), err
}

// ApplyWaiting applies bundles that wait for a Shoot's API server or webhooks, once these are
// served. It costs nothing without waiting bundles, otherwise one request for the pods of each
// Deployment that they wait for.
func (r *Reconciler) ApplyWaiting(ctx context.Context, o Owner, s State) (State, error) {
	at := o.newSession(s)
	err := r.applyWaiting(ctx, at)
	return at.finish(), err
}

// Inspect judges an owner now and writes nothing, not even conditions of ManagedResources. It has
// no thresholds: a broken component is False at once, and one in a rollout is Progressing. If the
// components cannot be read, their conditions are Unknown and the error has the cause.
func (r *Reconciler) Inspect(ctx context.Context, o Owner, s State) (*Inspection, error) {
	return r.inspect(ctx, o.newSession(s))
}

// Plan returns the changes that Reconcile would make, by the engine's dry run, and the number of
// unchanged objects. It writes nothing and generates no secret: unknown facts stay symbolic.
func (r *Reconciler) Plan(ctx context.Context, o Owner, s State) (after State, items []change.Item, unchanged int, err error) {
	at := o.newSession(s)
	items, unchanged, err = r.plan(ctx, at)
	return at.finish(), items, unchanged, err
}

// PlanSecrets returns the secrets that the components would get from the secrets manager. It stores
// nothing.
func (r *Reconciler) PlanSecrets(ctx context.Context, o Owner, s State) ([]PlannedSecret, error) {
	return r.planSecrets(ctx, o.newSession(s))
}

// SetOfManaged returns the set that writes a ManagedResource of an owner, or "" if it belongs to no
// bundle.
func (r *Reconciler) SetOfManaged(o Owner, s State, cluster string, ref apply.Ref) string {
	return r.setOfManaged(o.newSession(s), cluster, ref)
}
