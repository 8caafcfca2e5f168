// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckJob fails if the Job has failed; a running Job is healthy
// (pkg/utils/kubernetes/health/job.go).
func CheckJob(obj *unstructured.Unstructured) error { return toError(checkJob(obj)) }

func checkJob(obj *unstructured.Unstructured) *Failure {
	return checkOptionalCondition(obj, "Failed", "False")
}
