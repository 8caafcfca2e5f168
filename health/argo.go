package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Argo says what the built-in checks of Argo CD would call the object: Healthy, Progressing, Degraded, Suspended,
// Missing, or "" for kinds that Argo does not judge by itself. It is a projection of Check for people who compare the
// two tools; Argo's Lua checks of other projects' kinds are not followed, except the one for Shoots, which reads a
// label. Source: gitops-engine/pkg/health.
func Argo(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "Missing"
	}
	gvk := obj.GroupVersionKind()
	if obj.GetDeletionTimestamp() != nil {
		return "Progressing"
	}
	switch gvk.Group + "/" + gvk.Kind {
	case "core.gardener.cloud/Shoot":
		return argoShoot(obj.GetLabels()["shoot.gardener.cloud/status"])
	case "networking.k8s.io/Ingress", "extensions/Ingress", "/Service":
		return argoAddress(obj)
	case "/PersistentVolumeClaim":
		return map[string]string{"Bound": "Healthy", "Lost": "Degraded", "Pending": "Progressing"}[text(obj, "status", "phase")]
	case "/Pod":
		return argoPod(obj)
	case "batch/Job":
		return argoJob(obj)
	case "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet":
		return argoWorkload(obj)
	case "apiregistration.k8s.io/APIService":
		return progressingUnless(checkAPIService(obj) == nil)
	}
	return ""
}

func progressingUnless(done bool) string {
	if done {
		return "Healthy"
	}
	return "Progressing"
}

func argoShoot(label string) string {
	switch label {
	case "healthy":
		return "Healthy"
	case "progressing":
		return "Progressing"
	case "unhealthy":
		return "Degraded"
	}
	return "Unknown"
}

func argoAddress(obj *unstructured.Unstructured) string {
	if obj.GetKind() == "Service" && text(obj, "spec", "type") != "LoadBalancer" {
		return "Healthy"
	}
	return progressingUnless(len(listAt(obj.Object, "status", "loadBalancer", "ingress")) > 0)
}

func argoJob(obj *unstructured.Unstructured) string {
	if checkJob(obj) != nil {
		return "Degraded"
	}
	if flag(obj, "spec", "suspend") {
		return "Suspended"
	}
	c, ok := conditionOf(obj, "Complete")
	return progressingUnless(ok && c.status == "True")
}

func argoPod(obj *unstructured.Unstructured) string {
	switch text(obj, "status", "phase") {
	case "Succeeded":
		return "Healthy"
	case "Failed":
		return "Degraded"
	case "Running":
		if status, _ := KStatus(obj); status == StatusFailed {
			return "Degraded"
		}
		// A pod that runs once is at work until it ends.
		if text(obj, "spec", "restartPolicy") != "Always" {
			return "Progressing"
		}
		ready, ok := conditionOf(obj, "Ready")
		return progressingUnless(ok && ready.status == "True")
	case "Pending":
		return "Progressing"
	}
	return "Unknown"
}

func argoWorkload(obj *unstructured.Unstructured) string {
	if flag(obj, "spec", "paused") {
		return "Suspended"
	}
	if c, ok := conditionOf(obj, "Progressing"); ok && c.reason == "ProgressDeadlineExceeded" {
		return "Degraded"
	}
	if c, ok := conditionOf(obj, "ReplicaFailure"); ok && c.status == "True" {
		return "Degraded"
	}
	// Who replaces pods by hand decides when the rollout goes on.
	if text(obj, "spec", "updateStrategy", "type") == "OnDelete" {
		return progressingUnless(observed(obj) == nil)
	}
	status, _ := KStatus(obj)
	return progressingUnless(status == StatusCurrent)
}
