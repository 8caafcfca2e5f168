// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/render"
)

func (r *Reconciler) care(ctx context.Context, o *ownerSession) (_ []gardencorev1beta1.Condition, err error) {
	defer panics.Catch(&err)
	_, status, err := o.readStatus(ctx)
	if err != nil {
		return nil, err
	}
	b := condition.New(r.Clock, r.ConditionSettings.Thresholds)
	conditions := status.Conditions
	look := &servingCache{}
	if o.hasAPIServer() {
		answers := r.apiServerConditions(ctx, o, b, status, look)
		// An open connection survives the loss of its access, so isAccessCheckDue checks the access
		// from time to time.
		if (!condition.AreAllTrue(answers) || o.isAccessCheckDue(r.Clock.Now())) && o.restoreAccess(ctx) && !condition.AreAllTrue(answers) {
			answers = r.apiServerConditions(ctx, o, b, status, look)
		}
		conditions = condition.Merge(conditions, answers...)
	}
	last := o.currentState()
	bundles, failures, unjudged := slices.Clone(last.bundles), last.failures, last.unjudgedReason
	if why := unreachableReason(ctx, o.Local); why != "" {
		// The live cache would still show the state before the cluster became unreachable.
		bundles, unjudged = nil, why
	}
	slices.SortStableFunc(bundles, func(a, b render.Bundle) int { return strings.Compare(a.Name, b.Name) })
	byCondition := map[string][]render.Bundle{}
	for _, bundle := range bundles {
		for _, name := range conditionsOf(bundle) {
			byCondition[name] = append(byCondition[name], bundle)
		}
	}
	others, err := r.unhealthyForeignResources(ctx, o, bundles)
	if err != nil {
		unjudged = printable.Truncate(strings.Join(apply.Problems(err), "; "), maxMessageLength)
	}
	for _, name := range slices.Sorted(maps.Keys(byCondition)) {
		old := b.GetOrInit(conditions, gardencorev1beta1.ConditionType(name))
		judged := r.componentCondition(ctx, o, b, status, old, byCondition[name], failures, look)
		if v := others[name]; v != nil && judged.Status == gardencorev1beta1.ConditionTrue {
			judged = r.failedCondition(b, old, status, v.Reason, v.Message, errorCodes(v.Codes))
		}
		if name == conditionObservabilityHealthy && judged.Status == gardencorev1beta1.ConditionTrue {
			judged = r.prometheusCondition(ctx, o, b, status, old, judged)
		}
		conditions = condition.Merge(conditions, judged)
	}
	if unjudged != "" {
		conditions = condition.Merge(conditions, unknownConditions(b, o, conditions, unjudged)...)
	} else if len(bundles) > 0 {
		err = r.careExtensions(ctx, o, bundles)
	}
	if condition.Equal(conditions, status.Conditions) {
		return conditions, err
	}
	_, werr := o.ObjectCluster.MergePatch(ctx, o.Ref, map[string]any{"status": map[string]any{"conditions": conditions}}, settingsByKind[o.Input.Owner.Kind].fieldManager, "status")
	return conditions, errors.Join(err, o.ObjectCluster.Explain(o.Ref, "write the conditions", werr))
}

// prometheusCondition returns the condition about monitoring with the alerts of the Prometheus
// instances, if its objects are healthy.
func (r *Reconciler) prometheusCondition(ctx context.Context, o *ownerSession, b *condition.Builder, status commonStatus, old, judged gardencorev1beta1.Condition) gardencorev1beta1.Condition {
	v, err := r.checkPrometheuses(ctx, o)
	switch {
	case err != nil:
		return b.Unknown(old, condition.ReasonCheckError, printable.Truncate(strings.Join(apply.Problems(err), "; "), maxMessageLength))
	case v != nil:
		return r.failedCondition(b, old, status, v.Reason, v.Message, nil)
	}
	return judged
}

// unreachableReason returns why a cluster does not answer, or "" if it does.
func unreachableReason(ctx context.Context, c *apply.Cluster) string {
	if err := apiServerHealthy(ctx, c); err != nil {
		return strings.Join(apply.Problems(c.Explain(apply.Ref{}, "check", err)), "; ")
	}
	return ""
}

// unknownConditions sets the component conditions to Unknown, because their last status may be
// outdated.
func unknownConditions(b *condition.Builder, o *ownerSession, conditions []gardencorev1beta1.Condition, why string) []gardencorev1beta1.Condition {
	var out []gardencorev1beta1.Condition
	for _, c := range conditions {
		if _, ours := settingsByKind[o.Input.Owner.Kind].healthyReasons[string(c.Type)]; ours {
			out = append(out, b.Unknown(c, condition.ReasonCheckError, why))
		}
	}
	return out
}

// apiServerConditions returns the condition of the API server that an owner serves, or none. A
// Shoot's API server is judged if a process serves it, and always after its first answer, so that
// its loss is reported.
func (r *Reconciler) apiServerConditions(ctx context.Context, o *ownerSession, b *condition.Builder, status commonStatus, look *servingCache) []gardencorev1beta1.Condition {
	kind := settingsByKind[o.Input.Owner.Kind]
	if kind.apiServerCondition == "" || o.Target == nil {
		return nil
	}
	t := gardencorev1beta1.ConditionType(kind.apiServerCondition)
	judged := condition.Get(status.Conditions, t) != nil || o.Input.Owner.Kind == Garden
	old := b.GetOrInit(status.Conditions, t)
	if o.isHibernated() {
		if !judged {
			return nil
		}
		return []gardencorev1beta1.Condition{b.OK(old, "ConditionNotChecked", "Shoot cluster has been hibernated.")}
	}
	failed := func(reason, message string) []gardencorev1beta1.Condition {
		if judged {
			return []gardencorev1beta1.Condition{b.Failed(old, status.LastOperation, reason, message)}
		}
		return []gardencorev1beta1.Condition{r.failedCondition(b, old, status, reason, message, nil)}
	}
	err := apiServerHealthy(ctx, o.Target)
	switch {
	case err == nil:
		look.setServed()
		return []gardencorev1beta1.Condition{b.OK(old, "HealthzRequestSucceeded", "API server /healthz endpoint responded with success status code.")}
	case !judged && !look.isServed(ctx, o):
		return nil
	case apierrors.ReasonForError(err) != "":
		return failed("HealthzRequestFailed", "Request to API server /healthz endpoint failed: "+err.Error())
	}
	return failed(kind.downReason[0], kind.downReason[1]+": "+err.Error())
}

// isHibernated reports whether a Shoot is declared as hibernated.
func (o *ownerSession) isHibernated() bool {
	in := o.inputCopy()
	asleep, _, _ := unstructured.NestedBool(in.Objects[Shoot], "spec", "hibernation", "enabled")
	return asleep && in.Owner.Kind == Shoot
}

// reasonApplyFailed is the reason of a condition with a bundle that could not be applied
// (upstream's reason in the conditions of a ManagedResource).
const reasonApplyFailed = "ApplyFailed"

// componentCondition is True if all bundles are applied and healthy. Otherwise the first bad bundle
// decides, root causes first: failed to apply, unhealthy, missing.
func (r *Reconciler) componentCondition(ctx context.Context, o *ownerSession, b *condition.Builder, status commonStatus, old gardencorev1beta1.Condition,
	bundles []render.Bundle, failures map[string]string, look *servingCache) gardencorev1beta1.Condition {
	for _, bundle := range bundles {
		if text, failed := failures[bundle.Name]; failed {
			return r.failedCondition(b, old, status, reasonApplyFailed, printable.Truncate(text, maxMessageLength), condition.Codes(text))
		}
	}
	var missing *health.Verdict
	var unjudged error
	for _, bundle := range bundles {
		served, err := look.canApply(ctx, o, bundle)
		if err == nil && !served {
			continue // a waiting bundle affects no condition
		}
		var failure *health.Verdict
		if err == nil {
			failure, err = r.bundleFailure(ctx, o, bundle)
		}
		switch {
		case err != nil:
			// A known failure is more specific: the virtual garden is unreadable until its etcd
			// exists.
			if unjudged == nil {
				unjudged = err
			}
		case failure == nil:
		case failure.Status == health.StatusNotFound:
			// A missing object may be the consequence of another failure.
			missing = cmp.Or(missing, failure)
		default:
			return r.failedCondition(b, old, status, failure.Reason, failure.Message, errorCodes(failure.Codes))
		}
	}
	if missing != nil {
		return r.failedCondition(b, old, status, missing.Reason, missing.Message, errorCodes(missing.Codes))
	}
	if unjudged != nil {
		return b.Unknown(old, condition.ReasonCheckError, printable.Truncate(strings.Join(apply.Problems(unjudged), "; "), maxMessageLength))
	}
	running := settingsByKind[o.Input.Owner.Kind].healthyReasons[string(old.Type)]
	return b.OK(old, running[0], running[1])
}

// failedCondition returns the condition after a failed check. A condition that was never judged
// also gets its threshold: an object in creation is not broken.
func (r *Reconciler) failedCondition(b *condition.Builder, old gardencorev1beta1.Condition, status commonStatus, reason, message string, codes []gardencorev1beta1.ErrorCode) gardencorev1beta1.Condition {
	if _, hasThreshold := r.ConditionSettings.Thresholds[old.Type]; hasThreshold && old.Reason == condition.ReasonInitialized {
		return b.Progressing(old, reason, message, codes...)
	}
	return b.Failed(old, status.LastOperation, reason, message, codes...)
}

func errorCodes(in []string) []gardencorev1beta1.ErrorCode {
	var out []gardencorev1beta1.ErrorCode
	for _, c := range in {
		out = append(out, gardencorev1beta1.ErrorCode(c))
	}
	return out
}

// bundleFailure returns nil for a healthy bundle; its message names the cluster and the object.
func (r *Reconciler) bundleFailure(ctx context.Context, o *ownerSession, b render.Bundle) (*health.Verdict, error) {
	cluster, err := o.clusterForRole(b.Cluster)
	if err != nil {
		return nil, err
	}
	if b.Delivery.Direct {
		refs := make([]apply.Ref, 0, len(b.Objects))
		for _, obj := range b.Objects {
			refs = append(refs, apply.RefOf(obj.Unstructured))
		}
		bad, _, err := r.judgeForCluster(cluster).FirstProblems(ctx, refs)
		return withLocation(cluster, bad), err
	}
	ref := bundleManagedResourceRef(b)
	obj, err := o.Local.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		v := health.NotFound(ref.GVK(), b.Namespace, b.Name)
		return withLocation(o.Local, &v), nil
	}
	if err != nil {
		return nil, o.Local.Explain(ref, "read", err)
	}
	rm, err := r.resourceManager(o, b)
	if err != nil {
		return nil, err
	}
	if mr, err := rm.Read(ctx, b.Namespace, b.Name); err == nil {
		before := slices.Clone(mr.Status.Conditions)
		if v, err := rm.CheckHealth(ctx, mr); err == nil && v != nil && (!v.Healthy || r.ConditionSettings.ProgressingThreshold == nil) {
			return withLocation(cluster, v), nil
		}
		// CheckHealth wrote the conditions, which the live cache may not have yet
		if !condition.Equal(before, mr.Status.Conditions) {
			if obj, err = o.Local.GetLive(ctx, ref); err != nil {
				return nil, o.Local.Explain(ref, "read", err)
			}
		}
	}
	if f := health.CareManagedResource(obj, r.ConditionSettings.ProgressingThreshold, r.Clock.Now()); f != nil {
		return withLocation(o.Local, &health.Verdict{Kind: ref.Kind, Namespace: b.Namespace, Name: b.Name, Reason: f.Reason, Message: f.Message, Codes: f.Codes}), nil
	}
	return nil, nil
}

// withLocation adds the cluster and the object to the message of a verdict.
func withLocation(c *apply.Cluster, v *health.Verdict) *health.Verdict {
	if v == nil {
		return nil
	}
	out := *v
	out.Message = printable.Truncate(describeVerdict(c.Name(), *v), maxMessageLength)
	return &out
}

// maxMessageLength is the maximum length of a condition message, in characters.
const maxMessageLength = 600
