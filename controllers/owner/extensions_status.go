// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner/finalizers"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/render"
)

// Reasons of the conditions of an Extension (upstream's).
const (
	reasonExtensionInstalled     = "ReconcileSuccessful"
	reasonExtensionFailed        = "ReconcileFailed"
	reasonExtensionDeleted       = "DeleteSuccessful"
	reasonExtensionStillRequired = "InstalledInRuntime"
	reasonExtensionDeletionWaits = "DeletionWaits" // Pergola's: upstream has no gate
	reasonExtensionRequired      = "ExtensionRequired"
	reasonExtensionNotRequired   = "ExtensionNotRequired"
	reasonInstallationRequired   = "RequiredControllerInstallation"
	reasonNoInstallation         = "NoRequiredControllerInstallation"
)

// careExtensions writes the conditions of Extensions: their users, and the health of their bundles.
func (r *Reconciler) careExtensions(ctx context.Context, o *ownerSession, bundles []render.Bundle) error {
	live := o.currentState().extensions
	if len(live) == 0 {
		return nil
	}
	installations, known := r.installations(ctx, o)
	b := condition.New(r.Clock, r.ConditionSettings.Thresholds)
	var problems []error
	for _, e := range live {
		judged := &extensionCheck{reconciler: r, owner: o, builder: b, live: e, bundles: bundles}
		problems = append(problems, r.updateExtensionConditions(ctx, o, e, func(had []condition.Condition) []condition.Condition {
			had = judged.withRuntimeRequired(had)
			if known {
				had = judged.withVirtualRequired(had, installations)
			}
			return judged.withHealth(ctx, had)
		}))
	}
	return errors.Join(problems...)
}

// extensionCheck is one Extension during a health check.
type extensionCheck struct {
	reconciler *Reconciler
	owner      *ownerSession
	builder    *condition.Builder
	live       *unstructured.Unstructured
	bundles    []render.Bundle
}

// withRuntimeRequired sets the condition with the kinds of extension objects in the Garden that
// need the extension.
func (j *extensionCheck) withRuntimeRequired(had []condition.Condition) []condition.Condition {
	old := j.builder.GetOrInit(had, operatorv1alpha1.ExtensionRequiredRuntime)
	kinds := requiredKinds(j.bundles, render.ExtensionOf(j.live))
	if len(kinds) == 0 {
		return condition.Merge(had, j.builder.Update(old, gardencorev1beta1.ConditionFalse, reasonExtensionNotRequired, "Extension not required for any kind"))
	}
	return condition.Merge(had, j.builder.OK(old, reasonExtensionRequired, fmt.Sprintf("Extension required for kinds %s", kinds)))
}

// requiredKinds returns the kinds of the Garden's extension objects whose types an Extension
// offers.
func requiredKinds(bundles []render.Bundle, e render.Extension) []string {
	offered := map[string]bool{}
	resources, _ := e.Spec["resources"].([]any)
	for _, item := range resources {
		if r, ok := item.(map[string]any); ok {
			offered[fmt.Sprint(r["kind"], "/", r["type"])] = true
		}
	}
	var kinds []string
	for _, b := range bundles {
		for _, obj := range b.Objects {
			of, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
			if b.Cluster == render.ClusterRuntime && obj.GroupVersionKind().Group == "extensions.gardener.cloud" && offered[obj.GetKind()+"/"+of] {
				kinds = append(kinds, obj.GetKind())
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// installations returns the ControllerInstallations of extensions on Seeds, or false while the
// virtual garden does not answer.
func (r *Reconciler) installations(ctx context.Context, o *ownerSession) ([]gardencorev1beta1.ControllerInstallation, bool) {
	if o.Target == nil || !access.HasCredentials(ctx, o.Target.RESTConfig()) {
		return nil, false
	}
	list, err := listAllObjects(ctx, o.Target, gardencorev1beta1.SchemeGroupVersion.WithKind("ControllerInstallation"))
	if err != nil {
		return nil, false // the condition about the API server reports that
	}
	var out []gardencorev1beta1.ControllerInstallation
	for _, obj := range list {
		var i gardencorev1beta1.ControllerInstallation
		if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &i) == nil {
			out = append(out, i)
		}
	}
	return out, true
}

// withVirtualRequired sets the conditions about Seeds: whether they require the extension, and its
// health there.
func (j *extensionCheck) withVirtualRequired(had []condition.Condition, all []gardencorev1beta1.ControllerInstallation) []condition.Condition {
	old := j.builder.GetOrInit(had, operatorv1alpha1.ExtensionRequiredVirtual)
	own := slices.DeleteFunc(slices.Clone(all), func(i gardencorev1beta1.ControllerInstallation) bool {
		return i.Spec.RegistrationRef.Name != j.live.GetName()
	})
	required := slices.ContainsFunc(own, func(i gardencorev1beta1.ControllerInstallation) bool {
		c := condition.Get(i.Status.Conditions, gardencorev1beta1.ControllerInstallationRequired)
		return c != nil && c.Status == gardencorev1beta1.ConditionTrue
	})
	if !required {
		had = condition.Remove(had, operatorv1alpha1.ControllerInstallationsHealthy)
		return condition.Merge(had, j.builder.Update(old, gardencorev1beta1.ConditionFalse, reasonNoInstallation, "Extension does not have required ControllerInstallations for seed clusters"))
	}
	had = condition.Merge(had, j.builder.OK(old, reasonInstallationRequired, "Extension has required ControllerInstallations for seed clusters"))
	old = j.builder.GetOrInit(had, operatorv1alpha1.ControllerInstallationsHealthy)
	for _, i := range own {
		if reason, message := installationProblem(i); reason != "" {
			return condition.Merge(had, j.builder.Failed(old, nil, reason, printable.Truncate(message, maxMessageLength)))
		}
	}
	return condition.Merge(had, j.builder.OK(old, "ControllerInstallationsRunning", "All controller installations are healthy."))
}

// installationProblem returns the problem of an installation; the result is empty for none.
func installationProblem(i gardencorev1beta1.ControllerInstallation) (reason, message string) {
	for _, wanted := range []struct {
		kind   gardencorev1beta1.ConditionType
		status gardencorev1beta1.ConditionStatus
	}{
		{gardencorev1beta1.ControllerInstallationValid, gardencorev1beta1.ConditionTrue},
		{gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ConditionTrue},
		{gardencorev1beta1.ControllerInstallationHealthy, gardencorev1beta1.ConditionTrue},
		{gardencorev1beta1.ControllerInstallationProgressing, gardencorev1beta1.ConditionFalse},
	} {
		switch c := condition.Get(i.Status.Conditions, wanted.kind); {
		case c == nil:
			return "MissingCondition", fmt.Sprintf("ControllerInstallation %s has no condition %s yet", i.Name, wanted.kind)
		case c.Status != wanted.status:
			return c.Reason, fmt.Sprintf("ControllerInstallation %s: %s is %s: %s", i.Name, wanted.kind, c.Status, c.Message)
		}
	}
	return "", ""
}

// withHealth judges the bundles in the clusters of the Garden.
func (j *extensionCheck) withHealth(ctx context.Context, had []condition.Condition) []condition.Condition {
	name := j.live.GetName()
	for _, part := range []struct {
		kind            gardencorev1beta1.ConditionType
		bundles         []string
		reason, message string
	}{
		{operatorv1alpha1.ExtensionHealthy, []string{bundleRuntime(name)}, "ExtensionComponentsRunning", "All extension components are healthy."},
		{
			operatorv1alpha1.ExtensionAdmissionHealthy, []string{bundleAdmissionVirtual(name), bundleAdmissionRuntime(name)},
			"ExtensionAdmissionComponentsRunning", "All extension admission components are healthy.",
		},
	} {
		wanted := slices.DeleteFunc(slices.Clone(j.bundles), func(b render.Bundle) bool { return !slices.Contains(part.bundles, b.Name) })
		if len(wanted) == 0 {
			had = condition.Remove(had, part.kind)
			continue
		}
		had = condition.Merge(had, j.bundleHealth(ctx, j.builder.GetOrInit(had, part.kind), wanted, part.reason, part.message))
	}
	return had
}

func (j *extensionCheck) bundleHealth(ctx context.Context, old condition.Condition, bundles []render.Bundle, reason, message string) condition.Condition {
	for _, b := range bundles {
		failure, err := j.reconciler.bundleFailure(ctx, j.owner, b)
		switch {
		case err != nil:
			return j.builder.Unknown(old, condition.ReasonCheckError, printable.Truncate(strings.Join(apply.Problems(err), "; "), maxMessageLength))
		case failure != nil:
			return j.builder.Failed(old, nil, failure.Reason, failure.Message, errorCodes(failure.Codes)...)
		}
	}
	return j.builder.OK(old, reason, message)
}

// writeInstalledConditions writes the results of the steps of Extensions to their conditions.
func (r *run) writeInstalledConditions(ctx context.Context) error {
	b := condition.New(r.reconciler.Clock, nil)
	rendered := map[string]bool{}
	for _, bundle := range r.owner.Bundles() {
		rendered[bundle.Name] = true
	}
	var problems []error
	for _, e := range r.owner.currentState().extensions {
		var failed []error
		leaving := e.GetDeletionTimestamp() != nil && !r.owner.isExtensionDeclared(e.GetName())
		left := false
		if leaving {
			var err error
			if left, err = r.hasExtensionBundles(ctx, e.GetName()); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		for _, node := range r.report.Nodes {
			if rendered[node.ID] && slices.Contains(extensionBundles(e.GetName()), node.ID) && node.Err != nil {
				failed = append(failed, node.Err)
			}
		}
		problems = append(problems, r.reconciler.updateExtensionConditions(ctx, r.owner, e, func(had []condition.Condition) []condition.Condition {
			old := b.GetOrInit(had, operatorv1alpha1.ExtensionInstalled)
			switch {
			case len(failed) > 0:
				old = b.Update(old, gardencorev1beta1.ConditionFalse, reasonExtensionFailed, printable.Truncate(strings.Join(apply.Problems(errors.Join(failed...)), "; "), maxMessageLength))
			case leaving && rendered[bundleRuntime(e.GetName())]:
				old = b.OK(old, reasonExtensionStillRequired, "Extension is still required in runtime cluster")
			case left:
				old = b.OK(old, reasonExtensionDeletionWaits, "the installation still exists: its deletion is held until it is approved, or waits for its objects")
			case leaving:
				old = b.Update(old, gardencorev1beta1.ConditionFalse, reasonExtensionDeleted, "Extension has been deleted successfully")
			default:
				old = b.OK(old, reasonExtensionInstalled, "Extension has been reconciled successfully")
			}
			return condition.Merge(had, old)
		}))
	}
	return errors.Join(problems...)
}

// uninstallExtensions sets the conditions of Extensions to uninstalled and removes their
// finalizers, because their Garden is deleted.
func (r *run) uninstallExtensions(ctx context.Context) error {
	b := condition.New(r.reconciler.Clock, nil)
	var problems []error
	for _, e := range r.owner.currentState().extensions {
		no := func(had []condition.Condition, kind gardencorev1beta1.ConditionType, reason, message string) []condition.Condition {
			return condition.Merge(had, b.Update(b.GetOrInit(had, kind), gardencorev1beta1.ConditionFalse, reason, message))
		}
		problems = append(problems, r.reconciler.updateExtensionConditions(ctx, r.owner, e, func(had []condition.Condition) []condition.Condition {
			had = condition.Remove(had, operatorv1alpha1.ExtensionHealthy, operatorv1alpha1.ExtensionAdmissionHealthy, operatorv1alpha1.ControllerInstallationsHealthy)
			had = no(had, operatorv1alpha1.ExtensionRequiredRuntime, reasonExtensionNotRequired, "Extension not required for any kind")
			had = no(had, operatorv1alpha1.ExtensionRequiredVirtual, reasonNoInstallation, "Extension does not have required ControllerInstallations for seed clusters")
			return no(had, operatorv1alpha1.ExtensionInstalled, reasonExtensionDeleted, "Extension has been deleted successfully")
		}), finalizers.Change(ctx, r.owner.ObjectCluster, settingsByKind[Garden].fieldManager, apply.RefOf(e), finalizers.Remove(finalizerOperator)))
	}
	return errors.Join(problems...)
}

// updateExtensionConditions writes the conditions of an Extension if they change.
func (r *Reconciler) updateExtensionConditions(ctx context.Context, o *ownerSession, extension *unstructured.Unstructured, change func([]condition.Condition) []condition.Condition) error {
	ref := apply.RefOf(extension)
	live, err := o.ObjectCluster.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return o.ObjectCluster.Explain(ref, "read", err)
	}
	status, err := decodeStatus(o.ObjectCluster, ref, live)
	if err != nil {
		return err
	}
	conditions := change(slices.Clone(status.Conditions))
	if condition.Equal(conditions, status.Conditions) && status.ObservedGeneration == live.GetGeneration() {
		return nil
	}
	patch := map[string]any{"status": map[string]any{"conditions": conditions, "observedGeneration": live.GetGeneration()}}
	if _, err := o.ObjectCluster.MergePatch(ctx, ref, patch, settingsByKind[Garden].fieldManager, "status"); err != nil && !apierrors.IsNotFound(err) {
		return o.ObjectCluster.Explain(ref, "write the conditions", err)
	}
	return nil
}
