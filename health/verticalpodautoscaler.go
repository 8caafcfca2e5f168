// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckVerticalPodAutoscaler fails if ConfigUnsupported is reported
// (pkg/utils/kubernetes/health/vpa.go).
func CheckVerticalPodAutoscaler(obj *unstructured.Unstructured) error {
	return toError(checkVerticalPodAutoscaler(obj))
}

func checkVerticalPodAutoscaler(obj *unstructured.Unstructured) *Failure {
	return checkOptionalCondition(obj, "ConfigUnsupported", "False")
}
