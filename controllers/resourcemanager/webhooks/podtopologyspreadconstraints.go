// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spreadRevisions makes the constraints of a Deployment's pod count only pods of its revision, as
// the scheduler does for matchLabelKeys. During a rollout, counting the old revision would spread
// the new pods unevenly.
func spreadRevisions(_ context.Context, _ *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	revision, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if !ok {
		return nil
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if isRevisionSelector(constraint.LabelSelector) {
			continue
		}
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{}
		}
		metav1.AddLabelToSelector(constraint.LabelSelector, appsv1.DefaultDeploymentUniqueLabelKey, revision)
		// Both fields must not contain the same label.
		constraint.MatchLabelKeys = slices.DeleteFunc(constraint.MatchLabelKeys, isRevision)
	}
	return nil
}

func isRevision(key string) bool { return key == appsv1.DefaultDeploymentUniqueLabelKey }

// isRevisionSelector reports whether a selector already selects certain revisions.
func isRevisionSelector(selector *metav1.LabelSelector) bool {
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
