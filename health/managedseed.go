package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckManagedSeed fails unless the latest generation is observed, the Shoot is reconciled and the
// Seed is registered (pkg/utils/kubernetes/health/managedseed.go).
func CheckManagedSeed(obj *unstructured.Unstructured) error { return asError(checkManagedSeed(obj)) }

func checkManagedSeed(obj *unstructured.Unstructured) *Failure {
	return first(observed(obj), requireTrue(obj, "ShootReconciled"), requireTrue(obj, "SeedRegistered"))
}
