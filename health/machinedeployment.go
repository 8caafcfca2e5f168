// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckMachineDeployment fails unless the latest generation is observed, Available is True,
// Progressing, if present, is True, and neither ReplicaFailure nor Frozen is reported. Progressing
// is ignored while machines wait for a manual in-place update
// (pkg/utils/kubernetes/health/machinedeployment.go).
func CheckMachineDeployment(obj *unstructured.Unstructured) error {
	return toError(checkMachineDeployment(obj))
}

func checkMachineDeployment(obj *unstructured.Unstructured) *Failure {
	manual := stringAt(obj, "spec", "strategy", "type") == "InPlaceUpdate" &&
		stringAt(obj, "spec", "strategy", "inPlaceUpdate", "orchestrationType") == "Manual"
	waiting := manual && intOrZero(obj, "status", "updatedReplicas") != intOrZero(obj, "status", "replicas")

	var progressing *Failure
	if !waiting {
		progressing = checkOptionalCondition(obj, "Progressing", "True")
	}
	return firstFailure(
		checkGenerationObserved(obj),
		checkConditionTrue(obj, "Available"),
		progressing,
		checkOptionalCondition(obj, "ReplicaFailure", "False"),
		checkOptionalCondition(obj, "Frozen", "False"),
	)
}
