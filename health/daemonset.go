// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CheckDaemonSet fails unless the latest generation is observed, all pods are scheduled and none is
// misscheduled. During a rollout, pods may be unavailable up to the strategy's limit, otherwise
// none (pkg/utils/kubernetes/health/daemonset.go).
func CheckDaemonSet(obj *unstructured.Unstructured) error { return toError(checkDaemonSet(obj)) }

func checkDaemonSet(obj *unstructured.Unstructured) *Failure {
	if f := checkGenerationObserved(obj); f != nil {
		return f
	}
	var (
		desired     = intOrZero(obj, "status", "desiredNumberScheduled")
		current     = intOrZero(obj, "status", "currentNumberScheduled")
		unavailable = intOrZero(obj, "status", "numberUnavailable")
	)
	if current < desired {
		return waitf("not enough scheduled pods (%d/%d)", current, desired)
	}
	if n := intOrZero(obj, "status", "numberMisscheduled"); n > 0 {
		return failf("%d pod(s) run on nodes where they should not", n)
	}
	var allowed int64
	if intOrZero(obj, "status", "updatedNumberScheduled") < desired {
		allowed = maxUnavailable(obj, desired)
	}
	if unavailable > allowed {
		return waitf("too many unavailable pods (%d of %d, %d allowed)", unavailable, current, allowed)
	}
	return nil
}

// maxUnavailable returns how many pods may be missing during a rollout, or zero for other
// strategies.
func maxUnavailable(obj *unstructured.Unstructured, desired int64) int64 {
	if stringAt(obj, "spec", "updateStrategy", "type") != "RollingUpdate" {
		return 0
	}
	var limit intstr.IntOrString
	switch v := fieldAt(obj.Object, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable").(type) {
	case string:
		limit = intstr.FromString(v)
	default:
		n, _ := intAt(obj.Object, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
		limit = intstr.FromInt32(int32(n))
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(desired), false)
	if err != nil {
		return 0
	}
	return int64(n)
}

// IsDaemonSetProgressing reports whether a rollout is in progress, and why.
func IsDaemonSetProgressing(obj *unstructured.Unstructured) (bool, string) {
	if f := checkGenerationObserved(obj); f != nil {
		return true, f.Message
	}
	return rolloutProgress(intOrZero(obj, "status", "updatedNumberScheduled"), intOrZero(obj, "status", "desiredNumberScheduled"), obj.GetKind())
}
