// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckCustomResourceDefinition fails unless the names are accepted, the API is served and the CRD
// is not terminating (pkg/utils/kubernetes/health/customresourcedefinition.go).
func CheckCustomResourceDefinition(obj *unstructured.Unstructured) error {
	return toError(checkCustomResourceDefinition(obj))
}

func checkCustomResourceDefinition(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkConditionTrue(obj, "NamesAccepted"), checkConditionTrue(obj, "Established"), checkOptionalCondition(obj, "Terminating", "False"))
}
