package owner

import (
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/render"
)

// Kinds of owners, named like the folders of the catalogue.
const (
	Garden = "garden"
	Seed   = "seed"
	Shoot  = "shoot"
)

// InventoryNamespace has the inventories, on the cluster the components run on.
const InventoryNamespace = "garden"

// FieldManager owns the objects of components.
const FieldManager = "pergola"

// kindFacts are the differences between the kinds.
type kindFacts struct {
	// identity of the secrets manager (upstream's).
	identity string
	// role is the field manager of annotations and status.
	role string
	// staticCANames: the CAs of a shoot have no hash in their name.
	staticCANames bool
	// apiServer is the condition of the API server that the owner serves; empty for none.
	apiServer string
	// down has its reason and message while the API server is unreachable.
	down [2]string
	// running has reason and message of a True condition, by its type.
	running map[string][2]string
	// careNamespaces have the ManagedResources that count for conditions, including foreign ones.
	careNamespaces []string
	// keepsLastErrors: status has lastErrors.
	keepsLastErrors bool
	// encrypters are the Deployments of API servers that write to etcd, for owners whose
	// credentials are rotated here.
	encrypters []string
	// etcd is the Etcd with their encrypted data.
	etcd string
	// awaitedFirst is the state that a deletion waits for before it deletes anything; empty for
	// none. tasksOfDeletion delete objects that are in no bundle.
	awaitedFirst    string
	tasksOfDeletion []string
	// finalizers block the deletion of the owner until takeDown has finished.
	finalizers []string
}

var kinds = map[string]kindFacts{
	Garden: {
		identity: "gardener-operator", role: "gardener-operator", apiServer: "VirtualGardenAPIServerAvailable",
		encrypters: []string{"virtual-garden-kube-apiserver", "gardener-apiserver"}, etcd: "virtual-garden-etcd-main",
		awaitedFirst: stateUnused, tasksOfDeletion: []string{"remove-secrets", "yield-namespace", "release-references", "release-extensions"},
		finalizers:     []string{finalizerOperator, finalizerReference},
		down:           [2]string{"VirtualGardenAPIServerDown", "Could not reach the API server of the virtual garden"},
		careNamespaces: []string{"garden", "istio-system"},
		running: map[string][2]string{
			runtimeHealthy:       {"RuntimeComponentsRunning", "All runtime components are healthy."},
			virtualHealthy:       {"VirtualComponentsRunning", "All virtual garden components are healthy."},
			observabilityHealthy: {"ObservabilityComponentsRunning", "All observability components are healthy."},
		},
	},
	Seed: {
		identity: "gardenlet", role: "gardenlet", finalizers: []string{gardencorev1beta1.GardenerName},
		running: map[string][2]string{
			"SeedSystemComponentsHealthy": {"SystemComponentsRunning", "All system components are healthy."},
		},
	},
	Shoot: {
		identity: "gardenlet", role: "gardenlet", staticCANames: true, keepsLastErrors: true, apiServer: "APIServerAvailable", finalizers: []string{gardencorev1beta1.GardenerName},
		down: [2]string{"APIServerDown", "Could not reach the API server of the Shoot"},
		running: map[string][2]string{
			"ControlPlaneHealthy": {"ControlPlaneRunning", "All control plane components are healthy."},
		},
	},
}

// targets are the cluster roles of the API servers that owners serve.
var targets = map[string]string{Garden: render.ClusterVirtual, Shoot: render.ClusterShoot}

// operationType returns the type of a reconciliation in lastOperation. The first one of a Garden is
// a Reconcile, too: extensions wait for a successful Reconcile.
func operationType(kind string, last *gardencorev1beta1.LastOperation) gardencorev1beta1.LastOperationType {
	if kind == Garden {
		return gardencorev1beta1.LastOperationTypeReconcile
	}
	if last == nil || last.Type == gardencorev1beta1.LastOperationTypeCreate && last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return gardencorev1beta1.LastOperationTypeCreate
	}
	return gardencorev1beta1.LastOperationTypeReconcile
}
