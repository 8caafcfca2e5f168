// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Health states of Argo CD.
const (
	argoHealthy     = "Healthy"
	argoProgressing = "Progressing"
	argoDegraded    = "Degraded"
	argoSuspended   = "Suspended"
	argoUnknown     = "Unknown"
	argoMissing     = "Missing"
)

// argoHookFinalizer has Argo judge a hook that is being deleted like any other object.
const argoHookFinalizer = "argocd.argoproj.io/hook-finalizer"

// Argo returns the health that Argo CD would report: Healthy, Progressing, Degraded, Suspended,
// Unknown, Missing, or "" for kinds without a rule in Argo. It serves comparisons of the two tools
// and decides nothing here.
//
// It follows all built-in checks (gitops-engine/pkg/health). From Argo's Lua scripts
// (resource_customizations) it follows those for kinds in landscapes; see argo_customizations.go.
// As in Argo CD, a script takes precedence over a built-in check.
func Argo(obj *unstructured.Unstructured) string {
	if obj == nil {
		return argoMissing
	}
	if isArgoPendingDeletion(obj) {
		return argoProgressing
	}
	if verdict, ok := argoCustomized(obj); ok {
		return verdict
	}
	return argoBuiltIn(obj)
}

// ArgoBuiltIn is Argo without the scripts: the result of gitops-engine alone.
func ArgoBuiltIn(obj *unstructured.Unstructured) string {
	if obj == nil {
		return argoMissing
	}
	if isArgoPendingDeletion(obj) {
		return argoProgressing
	}
	return argoBuiltIn(obj)
}

func isArgoPendingDeletion(obj *unstructured.Unstructured) bool {
	return obj.GetDeletionTimestamp() != nil && !slices.Contains(obj.GetFinalizers(), argoHookFinalizer)
}

// argoBuiltIn picks the check of the kind. Checks that decode the object know certain versions;
// other versions are an error there, which Argo reports as Unknown.
func argoBuiltIn(obj *unstructured.Unstructured) string {
	var (
		check    func(*unstructured.Unstructured) string
		versions []string
	)
	gvk := obj.GroupVersionKind()
	switch gvk.Group + "/" + gvk.Kind {
	case "networking.k8s.io/Ingress", "extensions/Ingress":
		return progressingUnless(hasAddress(obj))
	case "argoproj.io/Workflow":
		return argoWorkflow(obj)
	case "autoscaling/HorizontalPodAutoscaler":
		check, versions = argoAutoscaler, []string{"v1", "v2", "v2beta1", "v2beta2"}
	case "apiregistration.k8s.io/APIService":
		check, versions = argoAPIService, []string{"v1", "v1beta1"}
	case "/Service":
		check, versions = argoService, []string{"v1"}
	case "/PersistentVolumeClaim":
		check, versions = argoClaim, []string{"v1"}
	case "/Pod":
		check, versions = argoPod, []string{"v1"}
	case "batch/Job":
		check, versions = argoJob, []string{"v1"}
	case "apps/Deployment":
		check, versions = argoDeployment, []string{"v1"}
	case "apps/StatefulSet":
		check, versions = argoStatefulSet, []string{"v1"}
	case "apps/ReplicaSet":
		check, versions = argoReplicaSet, []string{"v1"}
	case "apps/DaemonSet":
		check, versions = argoDaemonSet, []string{"v1"}
	default:
		return ""
	}
	if !slices.Contains(versions, gvk.Version) {
		return argoUnknown
	}
	return check(obj)
}

func progressingUnless(done bool) string {
	if done {
		return argoHealthy
	}
	return argoProgressing
}

func hasAddress(obj *unstructured.Unstructured) bool {
	return len(listAt(obj.Object, "status", "loadBalancer", "ingress")) > 0
}

func argoService(obj *unstructured.Unstructured) string {
	return progressingUnless(stringAt(obj, "spec", "type") != "LoadBalancer" || hasAddress(obj))
}

func argoAPIService(obj *unstructured.Unstructured) string {
	return progressingUnless(checkAPIService(obj) == nil)
}

func argoClaim(obj *unstructured.Unstructured) string {
	switch stringAt(obj, "status", "phase") {
	case "Bound":
		return argoHealthy
	case "Pending":
		return argoProgressing
	case "Lost":
		return argoDegraded
	}
	return argoUnknown
}

func argoWorkflow(obj *unstructured.Unstructured) string {
	switch stringAt(obj, "status", "phase") {
	case "", "Pending", "Running":
		return argoProgressing
	case "Succeeded":
		return argoHealthy
	case "Failed", "Error":
		return argoDegraded
	}
	return argoUnknown
}

// argoJob checks which conditions exist; it reads only the status of Suspended.
func argoJob(obj *unstructured.Unstructured) string {
	verdict := argoProgressing
	for _, c := range conditionsOf(obj) {
		switch {
		case c.kind == "Failed":
			return argoDegraded
		case c.kind == "Suspended" && c.status == "True":
			verdict = argoSuspended
		case c.kind == "Complete" || c.kind == "Suspended":
			if verdict != argoSuspended {
				verdict = argoHealthy
			}
		}
	}
	return verdict
}
