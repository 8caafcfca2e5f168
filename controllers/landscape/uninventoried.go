// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
)

// UninventoriedKind is a kind of object that Pergola creates without an inventory.
type UninventoriedKind struct {
	// Objects and Reason are for people: the objects, and the reason that they need no inventory.
	Objects, Reason string
	// Matches reports whether an object is one of them.
	Matches func(*unstructured.Unstructured) bool
}

// UninventoriedKinds returns all exemptions: the inventory of a bundle contains every other object
// that Pergola creates.
func UninventoriedKinds() []UninventoriedKind {
	return []UninventoriedKind{
		{
			"Secrets labelled managed-by=secrets-manager", "generated secrets; the secrets manager removes those that are no longer requested",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Secret" && o.GetLabels()["managed-by"] == "secrets-manager"
			},
		},
		{
			"Secrets labelled role=<name>-configuration", "encryption configuration, derived from a generated key; the garbage collector removes them",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Secret" && strings.HasSuffix(o.GetLabels()["role"], "-configuration") &&
					o.GetLabels()["resources.gardener.cloud/garbage-collectable-reference"] == "true"
			},
		},
		{
			"Secrets " + access.SecretName + " of the garden and of control planes of Shoots", "generated access under a fixed name; it exists as long as the control plane",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Secret" && access.IsPublished(o.GetName(), o.GetLabels())
			},
		},
		{
			"ServiceAccounts kube-system/* that Secrets shoot-access-* request", "identities of control planes in their API server; as in upstream, they exist as long as it does",
			tokenrequestor.IsRequested,
		},
		{
			"ConfigMaps garden/" + owner.InventoryPrefix + "*", "the inventories themselves; each is deleted with its bundle",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "ConfigMap" && o.GetNamespace() == owner.InventoryNamespace && strings.HasPrefix(o.GetName(), owner.InventoryPrefix)
			},
		},
		{
			fmt.Sprintf("Leases %[1]s/%[2]s (runtime cluster) and %[1]s/%[3]s (seeds)", leasesNamespace, operatorLease, gardenletLease), "the identity of the reconciling process; they outlive it",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Lease" && o.GetNamespace() == leasesNamespace && slices.Contains([]string{operatorLease, gardenletLease}, o.GetName())
			},
		},
	}
}

// DescribeUninventoriedKinds lists the exemptions for people.
func DescribeUninventoriedKinds() string {
	var b strings.Builder
	for _, e := range UninventoriedKinds() {
		fmt.Fprintf(&b, "  %s\n      %s\n", e.Objects, e.Reason)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
