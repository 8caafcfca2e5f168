// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckReplicaSet fails unless the latest generation is observed and all replicas are ready
// (pkg/utils/kubernetes/health/replicaset.go).
func CheckReplicaSet(obj *unstructured.Unstructured) error { return toError(checkReplicaSet(obj)) }

func checkReplicaSet(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkGenerationObserved(obj), readyReplicas(obj))
}
