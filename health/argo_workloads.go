// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoIgnoreRestartPolicy has Argo judge a one-time pod like a permanent one, except hooks.
const argoIgnoreRestartPolicy = "argocd.argoproj.io/ignore-restart-policy"

func argoDeployment(obj *unstructured.Unstructured) string {
	if boolAt(obj, "spec", "paused") {
		return argoSuspended
	}
	if checkGenerationObserved(obj) != nil {
		return argoProgressing
	}
	updated := intOrZero(obj, "status", "updatedReplicas")
	if c, ok := conditionOf(obj, "Progressing"); ok && c.reason == "ProgressDeadlineExceeded" {
		return argoDegraded
	}
	return progressingUnless(updated >= intOrDefault(obj, updated, "spec", "replicas") &&
		intOrZero(obj, "status", "replicas") <= updated &&
		intOrZero(obj, "status", "availableReplicas") >= updated)
}

func argoReplicaSet(obj *unstructured.Unstructured) string {
	if checkGenerationObserved(obj) != nil {
		return argoProgressing
	}
	if c, ok := conditionOf(obj, "ReplicaFailure"); ok && c.status == "True" {
		return argoDegraded
	}
	available := intOrZero(obj, "status", "availableReplicas")
	return progressingUnless(available >= intOrDefault(obj, available, "spec", "replicas"))
}

func argoStatefulSet(obj *unstructured.Unstructured) string {
	ready, updated := intOrZero(obj, "status", "readyReplicas"), intOrZero(obj, "status", "updatedReplicas")
	if intOrZero(obj, "status", "observedGeneration") == 0 || checkGenerationObserved(obj) != nil || ready < intOrDefault(obj, ready, "spec", "replicas") {
		return argoProgressing
	}
	strategy := stringAt(obj, "spec", "updateStrategy", "type")
	if _, set := fieldAt(obj.Object, "spec", "updateStrategy", "rollingUpdate").(map[string]any); set && strategy == "RollingUpdate" {
		replicas, counted := intAt(obj.Object, "spec", "replicas")
		partition, partitioned := intAt(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
		return progressingUnless(!counted || !partitioned || updated >= replicas-partition)
	}
	// With OnDelete, the user replaces the pods and controls the rollout.
	return progressingUnless(strategy == "OnDelete" || stringAt(obj, "status", "updateRevision") == stringAt(obj, "status", "currentRevision"))
}

func argoDaemonSet(obj *unstructured.Unstructured) string {
	if checkGenerationObserved(obj) != nil {
		return argoProgressing
	}
	desired := intOrZero(obj, "status", "desiredNumberScheduled")
	return progressingUnless(stringAt(obj, "spec", "updateStrategy", "type") == "OnDelete" ||
		intOrZero(obj, "status", "updatedNumberScheduled") >= desired && intOrZero(obj, "status", "numberAvailable") >= desired)
}

func argoPod(obj *unstructured.Unstructured) string {
	policy := stringAt(obj, "spec", "restartPolicy")
	if (policy == "Never" || policy == "OnFailure") && obj.GetAnnotations()[argoIgnoreRestartPolicy] == "true" && !isArgoHook(obj) {
		policy = "Always"
	}
	containers := listAt(obj.Object, "status", "containerStatuses")
	if policy == "Always" {
		for _, c := range containers {
			reason := textAt(c, "state", "waiting", "reason")
			if strings.HasPrefix(reason, "Err") || strings.HasSuffix(reason, "Error") || strings.HasSuffix(reason, "BackOff") {
				return argoDegraded
			}
		}
	}
	switch stringAt(obj, "status", "phase") {
	case "Pending":
		return argoProgressing
	case "Succeeded":
		return argoHealthy
	case "Failed":
		return argoDegraded
	case "Running":
		return argoRunningPod(obj, policy, containers)
	}
	return argoUnknown
}

func argoRunningPod(obj *unstructured.Unstructured, policy string, containers []map[string]any) string {
	switch policy {
	case "Always":
		if ready, ok := conditionOf(obj, "Ready"); ok && ready.status == "True" {
			return argoHealthy
		}
		for _, c := range containers {
			if _, ended := fieldAt(c, "lastState", "terminated").(map[string]any); ended {
				return argoDegraded
			}
		}
		return argoProgressing
	case "OnFailure", "Never":
		// A pod that runs once is progressing until it ends.
		return argoProgressing
	}
	return argoUnknown
}

func isArgoHook(obj *unstructured.Unstructured) bool {
	annotations := obj.GetAnnotations()
	_, argo := annotations["argocd.argoproj.io/hook"]
	_, helm := annotations["helm.sh/hook"]
	return argo || helm
}
