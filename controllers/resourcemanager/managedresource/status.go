// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
)

// Messages of the conditions; reasons are upstream's.
const (
	messageApplied   = "All resources are applied."
	messageImmutable = " Unchanged, because these fields are immutable: "
	messageDropped   = " Fields that the API server drops (for example, behind a disabled feature gate): "
	messageApplying  = "The resources are currently being applied."
	messageEmpty     = "Its Secrets have no objects, which looks like a mistake: set spec.secretRefs to [] to delete all. Remaining: "
	messageDeleting  = "The resources are currently being deleted."
	messageHealthy   = "All resources are healthy."
	messageRolledOut = "All resources have been fully rolled out."
	messagePending   = "The health checks have not yet been executed for the current set of resources."
	messageIgnored   = "Resources are not reconciled because the ManagedResource is annotated to be ignored."
)

// setApplied sets the condition ResourcesApplied.
func (r *Reconciler) setApplied(mr *resourcesv1alpha1.ManagedResource, reason, message string) {
	b := r.conditionBuilder()
	c := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	switch reason {
	case resourcesv1alpha1.ConditionApplySucceeded, resourcesv1alpha1.ConditionFieldsDropped:
		c = b.Update(c, gardencorev1beta1.ConditionTrue, reason, message)
	case resourcesv1alpha1.ConditionDeletionPending:
		c = b.Update(c, gardencorev1beta1.ConditionProgressing, reason, message)
	default:
		c = b.Update(c, gardencorev1beta1.ConditionFalse, reason, message)
	}
	mr.Status.Conditions = condition.Merge(mr.Status.Conditions, c)
}

// setPending says that a new set is being applied and not judged yet. It keeps the reason of an
// earlier failure, so that a new attempt does not hide it.
func (r *Reconciler) setPending(mr *resourcesv1alpha1.ManagedResource) {
	b := r.conditionBuilder()
	applied := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if applied.Status == gardencorev1beta1.ConditionFalse {
		applied = b.Update(applied, gardencorev1beta1.ConditionProgressing, applied.Reason, applied.Message)
	} else {
		applied = b.Update(applied, gardencorev1beta1.ConditionProgressing, resourcesv1alpha1.ConditionApplyProgressing, messageApplying)
	}
	unknown := func(kind gardencorev1beta1.ConditionType) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(mr.Status.Conditions, kind), gardencorev1beta1.ConditionUnknown, resourcesv1alpha1.ConditionHealthChecksPending, messagePending)
	}
	mr.Status.Conditions = condition.Merge(mr.Status.Conditions, applied, unknown(resourcesv1alpha1.ResourcesHealthy), unknown(resourcesv1alpha1.ResourcesProgressing))
}

// reportOtherClass says that another class still has the objects, unless that class reports its own
// progress.
func (r *Reconciler) reportOtherClass(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, finalizer string) error {
	if mr.Status.ObservedGeneration == mr.Generation {
		return nil
	}
	class := strings.TrimPrefix(strings.TrimPrefix(finalizer, resourcesv1alpha1.FinalizerName), "-")
	if class == "" {
		class = resourcesv1alpha1.ClassDefault
	}
	r.setApplied(mr, resourcesv1alpha1.ConditionDeletionPending, fmt.Sprintf("The resource manager of class %s still owns its objects (finalizer %s):"+
		" check that it is running.", class, finalizer))
	return r.writeStatus(ctx, mr, mr.Status.Resources)
}

// setClassChanged says that another class is responsible from now on.
func (r *Reconciler) setClassChanged(mr *resourcesv1alpha1.ManagedResource) {
	b := r.conditionBuilder()
	message := fmt.Sprintf("Its class is now %q; the resource manager of that class has not reconciled it yet.", ptr.Deref(mr.Spec.Class, resourcesv1alpha1.ClassDefault))
	for _, kind := range []gardencorev1beta1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing} {
		c := b.Update(b.GetOrInit(mr.Status.Conditions, kind), gardencorev1beta1.ConditionUnknown, resourcesv1alpha1.ConditionHealthChecksPending, message)
		mr.Status.Conditions = condition.Merge(mr.Status.Conditions, c)
	}
	mr.Status.Resources = nil
}

// setDeleting sets all conditions for a deletion that is not finished.
func (r *Reconciler) setDeleting(mr *resourcesv1alpha1.ManagedResource, reason, message string) {
	r.setApplied(mr, reason, message)
	b := r.conditionBuilder()
	set := func(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(mr.Status.Conditions, kind), status, resourcesv1alpha1.ConditionDeletionPending, messageDeleting)
	}
	mr.Status.Conditions = condition.Merge(mr.Status.Conditions,
		set(resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionFalse), set(resourcesv1alpha1.ResourcesProgressing, gardencorev1beta1.ConditionTrue))
}

func (r *Reconciler) setIgnored(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	b := r.conditionBuilder()
	set := func(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(mr.Status.Conditions, kind), status, resourcesv1alpha1.ConditionManagedResourceIgnored, messageIgnored)
	}
	mr.Status.Conditions = condition.Merge(mr.Status.Conditions,
		set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionTrue),
		set(resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionTrue),
		set(resourcesv1alpha1.ResourcesProgressing, gardencorev1beta1.ConditionFalse))
	mr.Status.ObservedGeneration = mr.Generation
	return r.writeStatus(ctx, mr, mr.Status.Resources)
}

// CheckHealth judges the objects in the inventory and writes the two health conditions. It returns
// the first verdict that is not good, or nil.
func (r *Reconciler) CheckHealth(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*health.Verdict, error) {
	verdict, err := r.setHealth(ctx, mr)
	if werr := r.writeStatus(ctx, mr, mr.Status.Resources); err == nil {
		err = werr
	}
	return verdict, err
}

// setHealth sets the two health conditions.
func (r *Reconciler) setHealth(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*health.Verdict, error) {
	refs := make([]apply.Ref, 0, len(mr.Status.Resources))
	for _, res := range r.withRememberedDigests(mr.UID, mr.Status.Resources) {
		if res.AppliedDigest == terminatingDigest {
			continue
		}
		refs = append(refs, apply.Ref{APIVersion: res.APIVersion, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name})
	}
	// Pods of a previous revision matter only during a rollout.
	before := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	judge := Judge{Cluster: r.Target, Rules: r.HealthOptions.Rules, ExistenceOnly: r.HealthOptions.ExistenceOnly, Clock: r.Clock,
		WaitForOldPods: before == nil || before.Status != gardencorev1beta1.ConditionFalse}
	found, err := judge.judgeAll(ctx, refs)
	bad, rolling := found.unhealthy, found.rolling
	b := r.conditionBuilder()
	healthy := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := b.GetOrInit(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case err != nil:
		healthy = b.Update(healthy, gardencorev1beta1.ConditionFalse, resourcesv1alpha1.ConditionHealthCheckError, err.Error())
	case bad != nil:
		healthy = b.Update(healthy, gardencorev1beta1.ConditionFalse, bad.Reason, formatVerdict(*bad, found.moreUnhealthy))
	default:
		healthy = b.Update(healthy, gardencorev1beta1.ConditionTrue, resourcesv1alpha1.ConditionResourcesHealthy, messageHealthy)
	}
	contested, fight := "", ""
	if r.WriteConflict != nil {
		contested, fight = r.WriteConflict(mr.Namespace, mr.Name)
	}
	switch {
	case err != nil:
	case rolling != nil && contested != "":
		progressing = b.Update(progressing, gardencorev1beta1.ConditionTrue, contested, fight+" Besides: "+formatVerdict(*rolling, found.moreRolling))
	case rolling != nil:
		progressing = b.Update(progressing, gardencorev1beta1.ConditionTrue, rolling.Kind+"Progressing", formatVerdict(*rolling, found.moreRolling))
	case contested != "":
		progressing = b.Update(progressing, gardencorev1beta1.ConditionTrue, contested, fight)
	default:
		progressing = b.Update(progressing, gardencorev1beta1.ConditionFalse, resourcesv1alpha1.ConditionResourcesRolledOut, messageRolledOut)
	}
	mr.Status.Conditions = condition.Merge(mr.Status.Conditions, healthy, progressing)
	if bad == nil {
		bad = rolling
	}
	return bad, err
}

// errInventoryChanged ends a run after another instance, which now has the lease, changed the
// inventory. Overwriting it would lose objects.
var errInventoryChanged = errors.New("another instance changed its inventory")

// writeStatus writes the differences of the status in one request, or none. It requires that the
// inventory is as last read or written (base). It ignores other changes of the ManagedResource.
func (r *Reconciler) writeStatus(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, base []resourcesv1alpha1.ObjectReference) error {
	for i := range mr.Status.Conditions {
		c := &mr.Status.Conditions[i]
		c.LastTransitionTime, c.LastUpdateTime = c.LastTransitionTime.Rfc3339Copy(), c.LastUpdateTime.Rfc3339Copy()
	}
	at := managedResourceRef(mr.Namespace, mr.Name)
	live, err := r.Read(ctx, mr.Namespace, mr.Name)
	for attempt := 1; ; attempt++ {
		var have resourcesv1alpha1.ManagedResourceStatus
		if err == nil && live.UID == mr.UID {
			have = live.Status
		}
		patch := r.statusPatch(mr, have)
		if len(patch) == 0 {
			return nil
		}
		answer, err := r.Source.MergePatch(ctx, at, map[string]any{"status": patch,
			"metadata": map[string]any{"resourceVersion": mr.ResourceVersion, "uid": mr.UID}}, statusFieldManager, "status")
		if err == nil {
			written, err := Decode(r.Source, answer)
			if err != nil {
				return err
			}
			mr.ResourceVersion = written.ResourceVersion
			r.rememberDigests(mr.UID, mr.Status.Resources, written.Status.Resources)
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == maxWriteAttempts {
			return r.Source.Explain(at, "write the status", err)
		}
		now, rerr := r.Source.GetLive(ctx, at)
		if rerr != nil {
			return r.Source.Explain(at, "read", rerr)
		}
		if live, err = Decode(r.Source, now); err != nil {
			return err
		}
		if live.UID != mr.UID || !hasSameReferences(r.withRememberedDigests(live.UID, live.Status.Resources), base) {
			return errInventoryChanged
		}
		mr.ResourceVersion = live.ResourceVersion
	}
}

// statusPatch returns the merge patch from a status to that of a ManagedResource.
func (r *Reconciler) statusPatch(mr *resourcesv1alpha1.ManagedResource, have resourcesv1alpha1.ManagedResourceStatus) map[string]any {
	want, patch := mr.Status, map[string]any{}
	if !condition.Equal(have.Conditions, want.Conditions) {
		patch["conditions"] = want.Conditions
	}
	if have.ObservedGeneration != want.ObservedGeneration {
		patch["observedGeneration"] = want.ObservedGeneration
	}
	if want.SecretsDataChecksum != nil && !reflect.DeepEqual(have.SecretsDataChecksum, want.SecretsDataChecksum) {
		patch["secretsDataChecksum"] = *want.SecretsDataChecksum
	}
	if !hasSameReferences(r.withRememberedDigests(mr.UID, have.Resources), r.withRememberedDigests(mr.UID, want.Resources)) {
		patch["resources"] = want.Resources
	}
	if want.Origin != "" && have.Origin != want.Origin && (len(patch) > 0 || have.Origin != "") {
		patch["origin"] = want.Origin
	}
	if len(patch) > 0 {
		// These alone are not worth a request, and upstream's definition does not have the fields.
		patch["summary"], patch["secretsVersion"] = Summary(mr), want.SecretsVersion
	}
	return patch
}
