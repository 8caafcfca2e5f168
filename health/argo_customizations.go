// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoCustomized judges kinds that Argo CD judges by a script. Argo CD has more than a hundred;
// these are the kinds in landscapes. They belong to Gardener (Shoot), Kubernetes, the Gateway API,
// Cluster API (MachineDeployment), Flux, cert-manager, external-secrets and Prometheus.
func argoCustomized(obj *unstructured.Unstructured) (string, bool) {
	gk := obj.GroupVersionKind().GroupKind()
	switch gk.Group + "/" + gk.Kind {
	case "core.gardener.cloud/Shoot":
		return argoShoot(obj), true
	case "batch/CronJob":
		return argoCronJob(obj), true
	case "policy/PodDisruptionBudget":
		return argoDisruptionBudget(obj), true
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return argoDefinition(obj), true
	case "cert-manager.io/Certificate":
		if c, ok := conditionOf(obj, "Issuing"); ok && c.status == "True" {
			return argoProgressing, true
		}
		return argoReady(obj), true
	case "cert-manager.io/Issuer", "cert-manager.io/ClusterIssuer":
		return argoReady(obj), true
	case "external-secrets.io/ExternalSecret":
		return argoExternalSecret(obj), true
	case "gateway.networking.k8s.io/Gateway":
		return argoGateway(obj), true
	case "gateway.networking.k8s.io/HTTPRoute":
		return argoRoute(obj), true
	case "helm.toolkit.fluxcd.io/HelmRelease":
		return argoFlux(obj, 2, "Released", "TestSuccess"), true
	case "source.toolkit.fluxcd.io/GitRepository":
		return argoFlux(obj, 2, "ArtifactInStorage"), true
	case "source.toolkit.fluxcd.io/OCIRepository":
		return argoFluxConditions(obj, 2, "ArtifactInStorage"), true
	case "kustomize.toolkit.fluxcd.io/Kustomization":
		return argoFlux(obj, 1), true
	case "cluster.x-k8s.io/MachineDeployment":
		return argoMachineDeployment(obj), true
	case "monitoring.coreos.com/Prometheus":
		return argoPrometheus(obj), true
	}
	return "", false
}

// argoShoot reads the label that Gardener writes.
func argoShoot(obj *unstructured.Unstructured) string {
	switch obj.GetLabels()["shoot.gardener.cloud/status"] {
	case "healthy":
		return argoHealthy
	case "unhealthy":
		return argoDegraded
	case "unknown":
		return argoUnknown
	}
	return argoProgressing
}

func argoCronJob(obj *unstructured.Unstructured) string {
	if boolAt(obj, "spec", "suspend") {
		return argoSuspended
	}
	status, ok := fieldAt(obj.Object, "status").(map[string]any)
	if !ok {
		return argoProgressing
	}
	scheduled, succeeded := timeAt(status, "lastScheduleTime"), timeAt(status, "lastSuccessfulTime")
	running := len(listAt(status, "active")) > 0
	if !scheduled.IsZero() && !succeeded.IsZero() && !running && succeeded.Before(scheduled) {
		return argoDegraded
	}
	return argoHealthy
}

// argoDisruptionBudget fails only on False conditions: too few pods may be intended.
func argoDisruptionBudget(obj *unstructured.Unstructured) string {
	verdict := argoProgressing
	for _, c := range conditionsOf(obj) {
		if c.status == "False" && c.reason != "InsufficientPods" {
			return argoDegraded
		}
		verdict = argoHealthy
	}
	return verdict
}

func argoDefinition(obj *unstructured.Unstructured) string {
	if len(conditionsOf(obj)) == 0 {
		return argoProgressing
	}
	has := func(kind, status string) bool {
		c, ok := conditionOf(obj, kind)
		return ok && c.status == status
	}
	established, _ := conditionOf(obj, "Established")
	switch {
	case has("Terminating", "True"):
		return argoProgressing
	case has("NamesAccepted", "False"):
		return argoDegraded
	case established.status == "False" && established.reason == "Installing":
		return argoProgressing
	case established.status != "True", has("NonStructuralSchema", "True"):
		return argoDegraded
	}
	return argoHealthy
}

// argoReady checks the Ready condition.
func argoReady(obj *unstructured.Unstructured) string {
	for _, c := range conditionsOf(obj) {
		switch {
		case c.kind == "Ready" && c.status == "True":
			return argoHealthy
		case c.kind == "Ready" && c.status == "False":
			return argoDegraded
		}
	}
	return argoProgressing
}

// argoExternalSecret waits for a condition of the latest refresh if the policy is OnChange.
func argoExternalSecret(obj *unstructured.Unstructured) string {
	if stringAt(obj, "spec", "refreshPolicy") == "OnChange" {
		ready, ok := conditionOf(obj, "Ready")
		refreshed := timeAt(obj.Object, "status", "refreshTime")
		if ok && ready.transition.Before(refreshed) {
			return argoProgressing
		}
	}
	return argoReady(obj)
}

// argoGateway checks the gateway's conditions, then the conditions of each listener.
func argoGateway(obj *unstructured.Unstructured) string {
	status, _ := fieldAt(obj.Object, "status").(map[string]any)
	_, reported := fieldAt(status, "conditions").([]any)
	if v := argoNetworking(conditionsAt(status, "conditions")); v != argoHealthy {
		return v
	}
	listeners := listAt(status, "listeners")
	for _, l := range listeners {
		if v := argoNetworking(conditionsAt(l, "conditions")); v != argoHealthy {
			return v
		}
	}
	return progressingUnless(reported || len(listeners) > 0)
}

// argoRoute checks every parent whose conditions are of the latest generation.
func argoRoute(obj *unstructured.Unstructured) string {
	_, generated := intAt(obj.Object, "metadata", "generation")
	verdict := argoProgressing
	for _, parent := range listAt(obj.Object, "status", "parents") {
		conditions := conditionsAt(parent, "conditions")
		current := !generated && len(conditions) > 0
		for _, c := range conditions {
			current = current || c.observedGeneration == generation(obj)
		}
		if !current {
			continue
		}
		if v := argoNetworking(conditions); v != argoHealthy {
			return v
		}
		verdict = argoHealthy
	}
	return verdict
}

// argoNetworking judges conditions of the Gateway API.
func argoNetworking(conditions []statusCondition) string {
	verdict := argoHealthy
	for _, c := range conditions {
		switch {
		case (c.kind == "ResolvedRefs" || c.kind == "Accepted") && c.status == "False":
			return argoDegraded
		case c.kind == "Programmed" && c.status != "True":
			verdict = argoProgressing
		}
	}
	return verdict
}

// argoFlux judges a kind of Flux that can be suspended.
func argoFlux(obj *unstructured.Unstructured, want int, further ...string) string {
	if boolAt(obj, "spec", "suspend") {
		return argoSuspended
	}
	return argoFluxConditions(obj, want, further...)
}

// argoFluxConditions counts: `want` of Ready and the further conditions have to be True. Only Ready
// Unknown with Reconciling True is progress.
func argoFluxConditions(obj *unstructured.Unstructured, want int, further ...string) string {
	if _, reported := fieldAt(obj.Object, "status", "conditions").([]any); !reported {
		return argoProgressing
	}
	var progressing, succeeded int
	for _, c := range conditionsOf(obj) {
		switch {
		case c.kind == "Ready" && c.status == "Unknown", c.kind == "Reconciling" && c.status == "True":
			progressing++
		case c.status == "True" && (c.kind == "Ready" || slices.Contains(further, c.kind)):
			succeeded++
		}
	}
	switch {
	case progressing == 2:
		return argoProgressing
	case succeeded == want:
		return argoHealthy
	}
	return argoDegraded
}

func argoMachineDeployment(obj *unstructured.Unstructured) string {
	if boolAt(obj, "spec", "paused") {
		return argoSuspended
	}
	switch stringAt(obj, "status", "phase") {
	case "Failed":
		return argoDegraded
	case "Running":
		replicas := intOrZero(obj, "status", "replicas")
		return progressingUnless(replicas == intOrZero(obj, "status", "updatedReplicas") && replicas == intOrZero(obj, "status", "readyReplicas"))
	}
	return argoProgressing
}

func argoPrometheus(obj *unstructured.Unstructured) string {
	c, ok := conditionOf(obj, "Available")
	switch {
	case !ok:
		return argoProgressing
	case c.status == "True":
		return argoHealthy
	case c.reason == "SomePodsNotReady":
		return argoProgressing
	}
	return argoDegraded
}
