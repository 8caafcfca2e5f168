// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ShootStatus is the observed state of a cluster.
type ShootStatus struct {
	// Conditions of the cluster: `APIServerAvailable`, `ControlPlaneHealthy`,
	// `ObservabilityComponentsHealthy`, `EveryNodeReady`, `SystemComponentsHealthy` and conditions
	// of extensions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Constraints on operations on the cluster, for example `HibernationPossible`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Constraints []Condition `json:"constraints,omitempty"`
	// Controller that last reconciled the Shoot.
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
	// Generation of the Shoot that the last operation reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Start of the current series of attempts. An operation that fails for too long is cancelled.
	// +optional
	RetryCycleStartTime *metav1.Time `json:"retryCycleStartTime,omitempty"`
	// Seed that runs the control plane now. Differs from the spec while the control plane moves.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Name of the cluster in the infrastructure and in the Seed, where it is the namespace of the
	// control plane. Immutable.
	// +optional
	TechnicalID string `json:"technicalID,omitempty"`
	// Identity that makes names derived from it unique. Immutable.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Identity of the cluster, as the cluster itself knows it. Immutable.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty"`
	// Addresses of the API server and of the service account issuer.
	// +optional
	// +listType=map
	// +listMapKey=name
	AdvertisedAddresses []ShootAdvertisedAddress `json:"advertisedAddresses,omitempty"`
	// Start of the move to another Seed.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty"`
	// Rotations of credentials, and encryption of data.
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
	// Progress of in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
	// Replacement of machines that the operation `rollout-workers` requested.
	// +optional
	ManualWorkerPoolRollout *ManualWorkerPoolRollout `json:"manualWorkerPoolRollout,omitempty"`
}

// ShootAdvertisedAddress is an address of a cluster.
type ShootAdvertisedAddress struct {
	// Name of the address: `external`, `internal`, `unmanaged`, `service-account-issuer` …; unique
	// within the list.
	Name string `json:"name"`
	// URL of the address.
	URL string `json:"url"`
	// Application that the address belongs to, for user interfaces.
	// +optional
	Application *string `json:"application,omitempty"`
}

// LastMaintenance is the last maintenance of a cluster.
type LastMaintenance struct {
	// Description of the changes, for people.
	Description string `json:"description"`
	// Start of the maintenance.
	TriggeredTime metav1.Time `json:"triggeredTime"`
	// State of the maintenance: `Processing`, `Succeeded` or `Failed`.
	State LastOperationState `json:"state"`
	// Cause of a failure, for people.
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
	// CIDRs of traffic from the cluster to the outside. Unset if they are not stable.
	// +optional
	// +listType=atomic
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
}

// InPlaceUpdatesStatus is the progress of in-place updates.
type InPlaceUpdatesStatus struct {
	// Pools that are not up to date.
	// +optional
	PendingWorkerUpdates *PendingWorkerUpdates `json:"pendingWorkerUpdates,omitempty"`
}

// PendingWorkerUpdates lists pools that are not up to date.
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
	// Pools whose machines still have to be replaced.
	// +optional
	// +listType=atomic
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// PendingWorkersRollout is a pool whose machines still have to be replaced.
type PendingWorkersRollout struct {
	// Name of the pool.
	Name string `json:"name"`
	// Time at which the replacement was last requested.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}
