package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckMachineDeployment fails unless the latest generation is observed, Available is True,
// Progressing, if present, is True, and neither ReplicaFailure nor Frozen is reported. Progressing
// is ignored while machines wait for a manual in-place update
// (pkg/utils/kubernetes/health/machinedeployment.go).
func CheckMachineDeployment(obj *unstructured.Unstructured) error {
	return asError(checkMachineDeployment(obj))
}

func checkMachineDeployment(obj *unstructured.Unstructured) *Failure {
	manual := text(obj, "spec", "strategy", "type") == "InPlaceUpdate" &&
		text(obj, "spec", "strategy", "inPlaceUpdate", "orchestrationType") == "Manual"
	waiting := manual && number(obj, "status", "updatedReplicas") != number(obj, "status", "replicas")

	var progressing *Failure
	if !waiting {
		progressing = optional(obj, "Progressing", "True")
	}
	return first(
		observed(obj),
		requireTrue(obj, "Available"),
		progressing,
		optional(obj, "ReplicaFailure", "False"),
		optional(obj, "Frozen", "False"),
	)
}
