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

// Exemption is a kind of object that Pergola creates without an inventory.
type Exemption struct {
	// For people: the objects, and the reason that they need no inventory.
	What, Why string
	// Matches reports whether an object is one of them.
	Matches func(*unstructured.Unstructured) bool
}

// Exemptions returns all exemptions: the inventory of a bundle contains every other object that
// Pergola creates.
func Exemptions() []Exemption {
	return []Exemption{
		{
			"Secrets labelled managed-by=secrets-manager", "generated secrets; the secrets manager removes what is not asked for any more",
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
			"Secrets " + access.SecretName + " of the garden and of control planes of Shoots", "generated access under a fixed name; it lives as long as the control plane",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Secret" && access.IsPublished(o.GetName(), o.GetLabels())
			},
		},
		{
			"ServiceAccounts kube-system/* that Secrets shoot-access-* ask for", "who control planes are in the API server that they serve; as upstream's they live as long as it does",
			tokenrequestor.IsRequested,
		},
		{
			"ConfigMaps garden/" + owner.InventoryPrefix + "*", "the inventories themselves; each goes with its bundle",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "ConfigMap" && o.GetNamespace() == owner.InventoryNamespace && strings.HasPrefix(o.GetName(), owner.InventoryPrefix)
			},
		},
		{
			fmt.Sprintf("Leases %[1]s/%[2]s (runtime cluster) and %[1]s/%[3]s (seeds)", leaseNamespace, leaseOperator, leaseGardenlet), "who converges; they outlive the process",
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Lease" && o.GetNamespace() == leaseNamespace && slices.Contains([]string{leaseOperator, leaseGardenlet}, o.GetName())
			},
		},
	}
}

// DescribeExemptions lists the exemptions for people.
func DescribeExemptions() string {
	var b strings.Builder
	for _, e := range Exemptions() {
		fmt.Fprintf(&b, "  %s\n      %s\n", e.What, e.Why)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
