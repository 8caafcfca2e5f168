package managedresource

import (
	"context"
	"reflect"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
)

// Messages of the conditions; reasons are upstream's.
const (
	messageApplied   = "All resources are applied."
	messageHealthy   = "All resources are healthy."
	messageRolledOut = "All resources have been fully rolled out."
	messagePending   = "The health checks have not yet been executed for the current set of resources."
	messageIgnored   = "Resources are not reconciled because the ManagedResource is annotated to be ignored."
)

// applied writes the ResourcesApplied condition: reason empty means success.
func (r *Reconciler) applied(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason string, cause error) error {
	b := r.builder()
	old := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	switch {
	case reason == "":
		old = b.Update(old, gardencorev1beta1.ConditionTrue, resourcesv1alpha1.ConditionApplySucceeded, messageApplied)
	case reason == resourcesv1alpha1.ConditionDeletionPending:
		old = b.Update(old, gardencorev1beta1.ConditionProgressing, reason, cause.Error())
	default:
		old = b.Update(old, gardencorev1beta1.ConditionFalse, reason, cause.Error())
	}
	return r.write(ctx, mr, old)
}

// pending says that a new set is being applied and not judged yet. The reason of an
// earlier failure is kept, so that a retry does not hide it.
func (r *Reconciler) pending(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	b := r.builder()
	applied := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if applied.Status == gardencorev1beta1.ConditionFalse {
		applied = b.Update(applied, gardencorev1beta1.ConditionProgressing, applied.Reason, applied.Message)
	} else {
		applied = b.Update(applied, gardencorev1beta1.ConditionProgressing, resourcesv1alpha1.ConditionApplyProgressing, "The resources are currently being applied.")
	}
	unknown := func(kind gardencorev1beta1.ConditionType) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(mr.Status.Conditions, kind), gardencorev1beta1.ConditionUnknown, resourcesv1alpha1.ConditionHealthChecksPending, messagePending)
	}
	return r.write(ctx, mr, applied, unknown(resourcesv1alpha1.ResourcesHealthy), unknown(resourcesv1alpha1.ResourcesProgressing))
}

func (r *Reconciler) ignored(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	b := r.builder()
	set := func(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(mr.Status.Conditions, kind), status, resourcesv1alpha1.ConditionManagedResourceIgnored, messageIgnored)
	}
	return r.write(ctx, mr,
		set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionTrue),
		set(resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionTrue),
		set(resourcesv1alpha1.ResourcesProgressing, gardencorev1beta1.ConditionFalse))
}

// CheckHealth judges the objects in the inventory and writes the two health conditions. It returns
// the first verdict that is not good, or nil.
func (r *Reconciler) CheckHealth(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*health.Verdict, error) {
	refs := make([]apply.Ref, 0, len(mr.Status.Resources))
	for _, res := range mr.Status.Resources {
		refs = append(refs, apply.Ref{APIVersion: res.APIVersion, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name})
	}
	bad, rolling, err := Judge(ctx, r.Target, refs)
	b := r.builder()
	healthy := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case err != nil:
		healthy = b.Update(healthy, gardencorev1beta1.ConditionFalse, resourcesv1alpha1.ConditionHealthCheckError, err.Error())
	case bad != nil:
		healthy = b.Update(healthy, gardencorev1beta1.ConditionFalse, bad.Reason, bad.Message)
	default:
		healthy = b.Update(healthy, gardencorev1beta1.ConditionTrue, resourcesv1alpha1.ConditionResourcesHealthy, messageHealthy)
	}
	switch {
	case err != nil:
	case rolling != nil:
		progressing = b.Update(progressing, gardencorev1beta1.ConditionTrue, rolling.Reason, rolling.Message)
	default:
		progressing = b.Update(progressing, gardencorev1beta1.ConditionFalse, resourcesv1alpha1.ConditionResourcesRolledOut, messageRolledOut)
	}
	if werr := r.write(ctx, mr, healthy, progressing); err == nil {
		err = werr
	}
	if bad == nil {
		bad = rolling
	}
	return bad, err
}

// write patches the conditions and the bookkeeping when they differ from what is there.
func (r *Reconciler) write(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, conditions ...gardencorev1beta1.Condition) error {
	merged := condition.Merge(mr.Status.Conditions, conditions...)
	live, err := r.get(ctx, mr.Namespace, mr.Name)
	if err == nil && reflect.DeepEqual(live.Status.Conditions, merged) && live.Status.ObservedGeneration == mr.Generation &&
		reflect.DeepEqual(live.Status.SecretsDataChecksum, mr.Status.SecretsDataChecksum) {
		mr.Status.Conditions = merged
		return nil
	}
	status := map[string]any{"conditions": merged, "observedGeneration": mr.Generation}
	if mr.Status.SecretsDataChecksum != nil {
		status["secretsDataChecksum"] = *mr.Status.SecretsDataChecksum
	}
	if err := patchStatus(ctx, r.Source, mr, status); err != nil {
		return err
	}
	mr.Status.Conditions, mr.Status.ObservedGeneration = merged, mr.Generation
	return nil
}
