// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// IgnoreReason returns why the gardenlet of the seed does not reconcile a Seed or Shoot, or "" if
// it does. Its objects on the seed stay unchanged. The operator uses the same rule to know for
// which owners not to wait.
func IgnoreReason(o *unstructured.Unstructured) string {
	if o.GetDeletionTimestamp() != nil {
		return "it is being deleted, and this version does not delete its objects on the seed: delete them there manually"
	}
	if o.GetKind() != "Shoot" {
		return ""
	}
	// Empty if the field has another type.
	wanted, _, _ := unstructured.NestedString(o.Object, "spec", "seedName")
	if is, _, _ := unstructured.NestedString(o.Object, "status", "seedName"); wanted != "" && is != "" && is != wanted {
		return fmt.Sprintf("its control plane is on seed %s, and this version cannot move it (two would compete for machines); to undo, set spec.seedName to %[1]s", is)
	}
	// Upstream honours it only for Shoots of the garden, unless configured otherwise.
	if o.GetNamespace() == gardencorev1beta1.GardenNamespace && o.GetAnnotations()[gardencorev1beta1.ShootIgnore] == "true" {
		return "annotation " + gardencorev1beta1.ShootIgnore + " says so"
	}
	return ""
}
