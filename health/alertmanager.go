// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckAlertmanager fails unless Available is True for the latest generation and all replicas are
// available (pkg/utils/kubernetes/health/monitoring.go).
func CheckAlertmanager(obj *unstructured.Unstructured) error { return toError(checkMonitoring(obj)) }

// IsAlertmanagerProgressing reports whether a rollout is in progress, and why.
func IsAlertmanagerProgressing(obj *unstructured.Unstructured) (bool, string) {
	return monitoringProgressing(obj)
}
