// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CheckDeployment fails unless the latest generation is observed, Available is True, Progressing,
// if present, is True and ReplicaFailure, if present, is False
// (pkg/utils/kubernetes/health/deployment.go).
func CheckDeployment(obj *unstructured.Unstructured) error { return toError(checkDeployment(obj)) }

func checkDeployment(obj *unstructured.Unstructured) *Failure {
	return firstFailure(
		checkGenerationObserved(obj),
		checkConditionTrue(obj, "Available"),
		checkOptionalCondition(obj, "Progressing", "True"),
		checkOptionalCondition(obj, "ReplicaFailure", "False"),
	)
}

func isDeployment(obj *unstructured.Unstructured) bool {
	gk := obj.GroupVersionKind().GroupKind()
	return gk.Kind == "Deployment" && (gk.Group == "apps" || gk.Group == "extensions")
}

// deploymentFailure combines the rule of the kind with the state of its pods.
func deploymentFailure(obj *unstructured.Unstructured, in inputs) *Failure {
	return firstFailure(checkDeployment(obj), crashFailure(obj, in))
}

// IsDeploymentProgressing reports whether a rollout is in progress, and why. It ends when the
// Progressing condition has reason NewReplicaSetAvailable; old pods may still exist; see WithPods.
func IsDeploymentProgressing(obj *unstructured.Unstructured) (bool, string) {
	return deploymentProgressing(obj, inputs{})
}

func deploymentProgressing(obj *unstructured.Unstructured, in inputs) (bool, string) {
	if f := checkGenerationObserved(obj); f != nil {
		return true, f.Message
	}
	c, ok := conditionOf(obj, "Progressing")
	if !ok {
		return true, `condition "Progressing" is missing`
	}
	if c.status != "True" || c.reason != "NewReplicaSetAvailable" {
		return true, c.message
	}
	if in.hasPods {
		if live, want := livePods(obj, in.related.Pods), intOrDefault(obj, 1, "spec", "replicas"); live != want {
			return true, fmt.Sprintf("%d pods exist, expected %d: old pods are still terminating or new pods are missing", live, want)
		}
	}
	return false, "Deployment is fully rolled out"
}

// livePods counts the selected pods that take part in the rollout: not terminal, stale, completed
// or disrupted.
func livePods(obj *unstructured.Unstructured, pods []corev1.Pod) int64 {
	var live int64
	for _, pod := range selectPods(obj, pods) {
		if isPodTerminal(pod) || isPodStale(pod.Status.Reason) || isPodCompleted(pod) || isPodDisrupted(pod) {
			continue
		}
		live++
	}
	return live
}
