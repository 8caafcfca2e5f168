package webhooks

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spreadRevisions makes the constraints of a Deployment's pod count the pods of the same revision
// only, as the scheduler would do for matchLabelKeys: otherwise those of the old revision are
// counted during a rollout, and the new ones end up uneven.
func spreadRevisions(_ context.Context, _ *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	revision, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if !ok {
		return nil
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if selectsRevision(constraint.LabelSelector) {
			continue
		}
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{}
		}
		metav1.AddLabelToSelector(constraint.LabelSelector, appsv1.DefaultDeploymentUniqueLabelKey, revision)
		// A label must not be in both.
		constraint.MatchLabelKeys = slices.DeleteFunc(constraint.MatchLabelKeys, isRevision)
	}
	return nil
}

func isRevision(key string) bool { return key == appsv1.DefaultDeploymentUniqueLabelKey }

// selectsRevision tells whether a selector asks for certain revisions already.
func selectsRevision(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	if _, ok := selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		return true
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpIn && isRevision(e.Key)
	})
}
