package owner

import (
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/render"
)

// Kinds of owners, named as the folders of the catalogue.
const (
	Garden = "garden"
	Seed   = "seed"
	Shoot  = "shoot"
)

// InventoryNamespace holds the inventories of direct bundles, on the cluster the components run on.
const InventoryNamespace = "garden"

// FieldManager owns what components deploy.
const FieldManager = "pergola"

// kindFacts is what differs between the kinds.
type kindFacts struct {
	// identity of the secrets manager, upstream's.
	identity string
	// role on whose behalf annotations and status are written.
	role string
	// staticCANames: the CAs of a shoot have no hash in their name.
	staticCANames bool
	// apiServer is the condition for the API server the owner serves, if one is reachable.
	apiServer string
	// down gives reason and message of it when the API server cannot be reached.
	down [2]string
	// running gives reason and message of a condition that holds.
	running map[string][2]string
	// careNamespaces are those whose ManagedResources count for the conditions, whoever wrote them.
	careNamespaces []string
	// keepsLastErrors: status has lastErrors.
	keepsLastErrors bool
	// encrypters are the Deployments of API servers that write to etcd, for owners whose
	// credentials are rotated here.
	encrypters []string
	// etcd is the Etcd with what they encrypt.
	etcd string
	// awaitedFirst is the state that a deletion awaits before it touches anything; empty for none.
	// It calls tasksOfDeletion: no bundle has what they take back.
	awaitedFirst    string
	tasksOfDeletion []string
	// finalizers keep the owner until it is taken down.
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

// targets are the roles that the API server of an owner has for bundles.
var targets = map[string]string{Garden: render.ClusterVirtual, Shoot: render.ClusterShoot}

// operationType says what a reconciliation is called in lastOperation. The first one of a Garden is
// called as all others are: extensions wait for a Reconcile that has succeeded.
func operationType(kind string, last *gardencorev1beta1.LastOperation) gardencorev1beta1.LastOperationType {
	if kind == Garden {
		return gardencorev1beta1.LastOperationTypeReconcile
	}
	if last == nil || last.Type == gardencorev1beta1.LastOperationTypeCreate && last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return gardencorev1beta1.LastOperationTypeCreate
	}
	return gardencorev1beta1.LastOperationTypeReconcile
}
