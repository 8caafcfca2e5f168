// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckAPIService fails unless Available is True (pkg/utils/kubernetes/health/apiservice.go).
func CheckAPIService(obj *unstructured.Unstructured) error { return toError(checkAPIService(obj)) }

func checkAPIService(obj *unstructured.Unstructured) *Failure {
	return checkConditionTrue(obj, "Available")
}
