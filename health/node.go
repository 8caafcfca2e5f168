// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckNode fails unless the node is Ready and reports no pressure and no missing network
// (pkg/utils/kubernetes/health/node.go). Pressure caused by the kubelet's configuration has the
// error code of a configuration problem, as in upstream's care controller.
func CheckNode(obj *unstructured.Unstructured) error { return toError(checkNode(obj)) }

func checkNode(obj *unstructured.Unstructured) *Failure {
	return addCodes(firstFailure(
		checkConditionTrue(obj, "Ready"),
		checkOptionalCondition(obj, "DiskPressure", "False"),
		checkOptionalCondition(obj, "MemoryPressure", "False"),
		checkOptionalCondition(obj, "NetworkUnavailable", "False"),
		checkOptionalCondition(obj, "PIDPressure", "False"),
	))
}
