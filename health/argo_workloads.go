package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoIgnoreRestartPolicy has Argo judge a one-time pod like a permanent one, except hooks.
const argoIgnoreRestartPolicy = "argocd.argoproj.io/ignore-restart-policy"

func argoDeployment(obj *unstructured.Unstructured) string {
	if flag(obj, "spec", "paused") {
		return argoSuspended
	}
	if observed(obj) != nil {
		return argoProgressing
	}
	updated := number(obj, "status", "updatedReplicas")
	if c, ok := conditionOf(obj, "Progressing"); ok && c.reason == "ProgressDeadlineExceeded" {
		return argoDegraded
	}
	return progressingUnless(updated >= numberOr(obj, updated, "spec", "replicas") &&
		number(obj, "status", "replicas") <= updated &&
		number(obj, "status", "availableReplicas") >= updated)
}

func argoReplicaSet(obj *unstructured.Unstructured) string {
	if observed(obj) != nil {
		return argoProgressing
	}
	if c, ok := conditionOf(obj, "ReplicaFailure"); ok && c.status == "True" {
		return argoDegraded
	}
	available := number(obj, "status", "availableReplicas")
	return progressingUnless(available >= numberOr(obj, available, "spec", "replicas"))
}

func argoStatefulSet(obj *unstructured.Unstructured) string {
	ready, updated := number(obj, "status", "readyReplicas"), number(obj, "status", "updatedReplicas")
	if number(obj, "status", "observedGeneration") == 0 || observed(obj) != nil || ready < numberOr(obj, ready, "spec", "replicas") {
		return argoProgressing
	}
	strategy := text(obj, "spec", "updateStrategy", "type")
	if _, set := fieldAt(obj.Object, "spec", "updateStrategy", "rollingUpdate").(map[string]any); set && strategy == "RollingUpdate" {
		replicas, counted := intAt(obj.Object, "spec", "replicas")
		partition, partitioned := intAt(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
		return progressingUnless(!counted || !partitioned || updated >= replicas-partition)
	}
	// With OnDelete, the user replaces the pods and controls the rollout.
	return progressingUnless(strategy == "OnDelete" || text(obj, "status", "updateRevision") == text(obj, "status", "currentRevision"))
}

func argoDaemonSet(obj *unstructured.Unstructured) string {
	if observed(obj) != nil {
		return argoProgressing
	}
	desired := number(obj, "status", "desiredNumberScheduled")
	return progressingUnless(text(obj, "spec", "updateStrategy", "type") == "OnDelete" ||
		number(obj, "status", "updatedNumberScheduled") >= desired && number(obj, "status", "numberAvailable") >= desired)
}

func argoPod(obj *unstructured.Unstructured) string {
	policy := text(obj, "spec", "restartPolicy")
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
	switch text(obj, "status", "phase") {
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
