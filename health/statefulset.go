// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CheckStatefulSet fails unless the latest generation is observed and all replicas are ready; unset
// replicas mean one (pkg/utils/kubernetes/health/statefulset.go).
func CheckStatefulSet(obj *unstructured.Unstructured) error { return toError(checkStatefulSet(obj)) }

func checkStatefulSet(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkGenerationObserved(obj), readyReplicas(obj))
}

// readyReplicas fails unless status.readyReplicas has reached spec.replicas.
func readyReplicas(obj *unstructured.Unstructured) *Failure {
	want, ready := intOrDefault(obj, 1, "spec", "replicas"), intOrZero(obj, "status", "readyReplicas")
	if ready < want {
		return waitf("not enough ready replicas (%d/%d)", ready, want)
	}
	return nil
}

// IsStatefulSetProgressing reports whether a rollout is in progress, and why.
func IsStatefulSetProgressing(obj *unstructured.Unstructured) (bool, string) {
	if f := checkGenerationObserved(obj); f != nil {
		return true, f.Message
	}
	return rolloutProgress(intOrZero(obj, "status", "updatedReplicas"), intOrDefault(obj, 1, "spec", "replicas"), obj.GetKind())
}

func rolloutProgress(updated, want int64, kind string) (bool, string) {
	if updated < want {
		return true, fmt.Sprintf("%d of %d replica(s) have been updated", updated, want)
	}
	return false, kind + " is fully rolled out"
}
