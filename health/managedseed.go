// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckManagedSeed fails unless the latest generation is observed, the Shoot is reconciled and the
// Seed is registered (pkg/utils/kubernetes/health/managedseed.go).
func CheckManagedSeed(obj *unstructured.Unstructured) error { return toError(checkManagedSeed(obj)) }

func checkManagedSeed(obj *unstructured.Unstructured) *Failure {
	return firstFailure(checkGenerationObserved(obj), checkConditionTrue(obj, "ShootReconciled"), checkConditionTrue(obj, "SeedRegistered"))
}
