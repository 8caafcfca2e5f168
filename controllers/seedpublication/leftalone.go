package seedpublication

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// LeftAlone says why the gardenlet of the seed that a Seed is, or that a Shoot has in its spec,
// does not converge it; empty when it does. What is on the seed stays as it is. The operator goes
// by the same facts, for nothing comes of what it waits for then.
func LeftAlone(o *unstructured.Unstructured) string {
	if o.GetDeletionTimestamp() != nil {
		return "it is being deleted, and this version does not take down what runs for it on the seed, which stays as it is: whoever wants it gone deletes it there by hand"
	}
	if o.GetKind() != "Shoot" {
		return ""
	}
	// of another form it is empty
	wanted, _, _ := unstructured.NestedString(o.Object, "spec", "seedName")
	if is, _, _ := unstructured.NestedString(o.Object, "status", "seedName"); wanted != "" && is != "" && is != wanted {
		return fmt.Sprintf("its control plane is on seed %s, and this version does not move it: a second one would fight for the same machines; to go back, set spec.seedName to %[1]s", is)
	}
	// Upstream obeys it for Shoots of the garden only, unless configured otherwise.
	if o.GetNamespace() == gardencorev1beta1.GardenNamespace && o.GetAnnotations()[gardencorev1beta1.ShootIgnore] == "true" {
		return "annotation " + gardencorev1beta1.ShootIgnore + " says so"
	}
	return ""
}
