// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckReplicationController fails unless the latest generation is observed and all replicas are
// ready (pkg/utils/kubernetes/health/replicationcontroller.go).
func CheckReplicationController(obj *unstructured.Unstructured) error {
	return toError(checkReplicationController(obj))
}

func checkReplicationController(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkGenerationObserved(obj), readyReplicas(obj))
}
