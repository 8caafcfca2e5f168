package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ShootStatus is the cluster as it is.
type ShootStatus struct {
	// Verdicts on the cluster: `APIServerAvailable`, `ControlPlaneHealthy`, `ObservabilityComponentsHealthy`,
	// `EveryNodeReady`, `SystemComponentsHealthy` and those of extensions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// What can be done with the cluster now, for example `HibernationPossible`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Constraints []Condition `json:"constraints,omitempty"`
	// Controller that last worked on the Shoot.
	// +optional
	Gardener Gardener `json:"gardener,omitempty"`
	// Whether the cluster is hibernated.
	// +optional
	IsHibernated bool `json:"hibernated"`
	// Operation in progress, or the last one.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// Failures of the last operation.
	// +optional
	// +listType=atomic
	LastErrors []LastError `json:"lastErrors,omitempty"`
	// Generation of the Shoot that the last operation worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Begin of the current series of attempts. An operation that fails for too long is given up.
	// +optional
	RetryCycleStartTime *metav1.Time `json:"retryCycleStartTime,omitempty"`
	// Seed that runs the control plane now. Differs from the spec while the control plane moves.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Name of the cluster in infrastructure and Seed, where it is the namespace of the control plane. Immutable.
	// +optional
	TechnicalID string `json:"technicalID,omitempty"`
	// Identity that makes names derived from it unique. Immutable.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Identity of the cluster as it is known to itself. Immutable.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty"`
	// Addresses of the API server and of the service account issuer.
	// +optional
	// +listType=map
	// +listMapKey=name
	AdvertisedAddresses []ShootAdvertisedAddress `json:"advertisedAddresses,omitempty"`
	// Begin of the move to another Seed.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty"`
	// Rotation of credentials, and encryption of data.
	// +optional
	Credentials *ShootCredentials `json:"credentials,omitempty"`
	// Time at which a schedule last hibernated or woke the cluster.
	// +optional
	LastHibernationTriggerTime *metav1.Time `json:"lastHibernationTriggerTime,omitempty"`
	// Last maintenance.
	// +optional
	LastMaintenance *LastMaintenance `json:"lastMaintenance,omitempty"`
	// Resources encrypted in etcd. Deprecated: see `credentials.encryptionAtRest`.
	// +optional
	// +listType=atomic
	EncryptedResources []string `json:"encryptedResources,omitempty"`
	// Networks of the cluster.
	// +optional
	Networking *NetworkingStatus `json:"networking,omitempty"`
	// Updates that leave the machines as they are.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
	// Replacement of machines that was asked for by the operation `rollout-workers`.
	// +optional
	ManualWorkerPoolRollout *ManualWorkerPoolRollout `json:"manualWorkerPoolRollout,omitempty"`
}

// ShootAdvertisedAddress is an address of a cluster.
type ShootAdvertisedAddress struct {
	// Name of the address: `external`, `internal`, `unmanaged`, `service-account-issuer` …; unique within the list.
	Name string `json:"name"`
	// URL of the address.
	URL string `json:"url"`
	// Application that the address belongs to, for user interfaces.
	// +optional
	Application *string `json:"application,omitempty"`
}

// LastMaintenance is the last maintenance of a cluster.
type LastMaintenance struct {
	// What was done, for a person.
	Description string `json:"description"`
	// Begin of the maintenance.
	TriggeredTime metav1.Time `json:"triggeredTime"`
	// How it went: `Processing`, `Succeeded` or `Failed`.
	State LastOperationState `json:"state"`
	// What went wrong, for a person.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`
}

// NetworkingStatus holds the networks of a cluster.
type NetworkingStatus struct {
	// CIDRs of the pod network.
	// +optional
	// +listType=atomic
	Pods []string `json:"pods,omitempty"`
	// CIDRs of the node network.
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// CIDRs of the service network.
	// +optional
	// +listType=atomic
	Services []string `json:"services,omitempty"`
	// CIDRs that traffic from the cluster to the outside comes from. Unset where they are not stable.
	// +optional
	// +listType=atomic
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
}

// InPlaceUpdatesStatus is the progress of updates that leave machines as they are.
type InPlaceUpdatesStatus struct {
	// Pools that are not up to date.
	// +optional
	PendingWorkerUpdates *PendingWorkerUpdates `json:"pendingWorkerUpdates,omitempty"`
}

// PendingWorkerUpdates names pools that are not up to date.
type PendingWorkerUpdates struct {
	// Pools with strategy `AutoInPlaceUpdate`.
	// +optional
	// +listType=atomic
	AutoInPlaceUpdate []string `json:"autoInPlaceUpdate,omitempty"`
	// Pools with strategy `ManualInPlaceUpdate`.
	// +optional
	// +listType=atomic
	ManualInPlaceUpdate []string `json:"manualInPlaceUpdate,omitempty"`
}

// ManualWorkerPoolRollout is the progress of a replacement of machines.
type ManualWorkerPoolRollout struct {
	// Pools whose machines are still to be replaced.
	// +optional
	// +listType=atomic
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// PendingWorkersRollout is a pool whose machines are still to be replaced.
type PendingWorkersRollout struct {
	// Name of the pool.
	Name string `json:"name"`
	// Time at which the replacement was last asked for.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}
