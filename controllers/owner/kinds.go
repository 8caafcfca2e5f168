// SPDX-License-Identifier: Apache-2.0

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

// kindSettings are the differences between the kinds.
type kindSettings struct {
	// secretsManagerIdentity is the identity of the secrets manager (upstream's).
	secretsManagerIdentity string
	// fieldManager is the field manager of annotations and status.
	fieldManager string
	// staticCANames means that the CAs of a shoot have no hash in their name.
	staticCANames bool
	// apiServerCondition is the condition of the API server that the owner serves; it is empty for
	// none.
	apiServerCondition string
	// downReason has its reason and message while the API server is unreachable.
	downReason [2]string
	// healthyReasons has reason and message of a True condition, by its type.
	healthyReasons map[string][2]string
	// careNamespaces have the ManagedResources that count for conditions, including foreign ones.
	careNamespaces []string
	// hasLastErrors means that status has lastErrors.
	hasLastErrors bool
	// encryptingAPIServers are the Deployments of API servers that write to etcd, for owners whose
	// credentials are rotated here.
	encryptingAPIServers []string
	// etcd is the Etcd with their encrypted data.
	etcd string
	// firstDeletionState is the state that a deletion waits for before it deletes anything; it is
	// empty for none. deletionTasks delete objects that are in no bundle.
	firstDeletionState string
	deletionTasks      []string
	// finalizers block the deletion of the owner until runDeletion has finished.
	finalizers []string
}

var settingsByKind = map[string]kindSettings{
	Garden: {
		secretsManagerIdentity: "gardener-operator", fieldManager: "gardener-operator", apiServerCondition: "VirtualGardenAPIServerAvailable",
		encryptingAPIServers: []string{"virtual-garden-kube-apiserver", "gardener-apiserver"}, etcd: "virtual-garden-etcd-main",
		firstDeletionState: stateUnused, deletionTasks: []string{"remove-secrets", "yield-namespace", "release-references", "release-extensions"},
		finalizers:     []string{finalizerOperator, finalizerReference},
		downReason:     [2]string{"VirtualGardenAPIServerDown", "Could not reach the API server of the virtual garden"},
		careNamespaces: []string{"garden", "istio-system"},
		healthyReasons: map[string][2]string{
			conditionRuntimeHealthy:       {"RuntimeComponentsRunning", "All runtime components are healthy."},
			conditionVirtualHealthy:       {"VirtualComponentsRunning", "All virtual garden components are healthy."},
			conditionObservabilityHealthy: {"ObservabilityComponentsRunning", "All observability components are healthy."},
		},
	},
	Seed: {
		secretsManagerIdentity: "gardenlet", fieldManager: "gardenlet", finalizers: []string{gardencorev1beta1.GardenerName},
		healthyReasons: map[string][2]string{
			"SeedSystemComponentsHealthy": {"SystemComponentsRunning", "All system components are healthy."},
		},
	},
	Shoot: {
		secretsManagerIdentity: "gardenlet", fieldManager: "gardenlet", staticCANames: true, hasLastErrors: true, apiServerCondition: "APIServerAvailable", finalizers: []string{gardencorev1beta1.GardenerName},
		downReason: [2]string{"APIServerDown", "Could not reach the API server of the Shoot"},
		healthyReasons: map[string][2]string{
			"ControlPlaneHealthy": {"ControlPlaneRunning", "All control plane components are healthy."},
		},
	},
}

// targetRoles are the cluster roles of the API servers that owners serve.
var targetRoles = map[string]string{Garden: render.ClusterVirtual, Shoot: render.ClusterShoot}

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
