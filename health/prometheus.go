// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

const groupMonitoring = "monitoring.coreos.com"

// CheckPrometheus fails unless Available is True for the latest generation and all replicas are
// available (pkg/utils/kubernetes/health/monitoring.go).
func CheckPrometheus(obj *unstructured.Unstructured) error { return toError(checkMonitoring(obj)) }

// IsPrometheusProgressing reports whether a rollout is in progress, and why.
func IsPrometheusProgressing(obj *unstructured.Unstructured) (bool, string) {
	return monitoringProgressing(obj)
}

// checkMonitoring is the rule of both prometheus-operator kinds. They report the observed
// generation per condition.
func checkMonitoring(obj *unstructured.Unstructured) *Failure {
	if f := monitoringCondition(obj, "Available"); f != nil {
		return f
	}
	want, available := intOrDefault(obj, 1, "spec", "replicas"), intOrZero(obj, "status", "availableReplicas")
	if available < want {
		return waitf("not enough available replicas (%d/%d)", available, want)
	}
	return nil
}

func monitoringProgressing(obj *unstructured.Unstructured) (bool, string) {
	if f := monitoringCondition(obj, "Reconciled"); f != nil {
		return true, f.Message
	}
	return rolloutProgress(intOrZero(obj, "status", "updatedReplicas"), intOrDefault(obj, 1, "spec", "replicas"), obj.GetKind())
}

func monitoringCondition(obj *unstructured.Unstructured, kind string) *Failure {
	c, ok := conditionOf(obj, kind)
	if !ok {
		return waitf("condition %q is missing", kind)
	}
	if c.observedGeneration < generation(obj) {
		return waitf("observed generation outdated (%d/%d)", c.observedGeneration, generation(obj))
	}
	return c.expect("True")
}
