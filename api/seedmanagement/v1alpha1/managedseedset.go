// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=managedseedsets,singular=managedseedset,shortName=mss,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of ManagedSeeds that are wanted."
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ManagedSeeds that are ready."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ManagedSeedSet maintains a number of similar ManagedSeeds, each with its Shoot. It lives in
// namespace `garden`.
type ManagedSeedSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the ManagedSeedSet.
	// +optional
	Spec ManagedSeedSetSpec `json:"spec,omitempty"`
	// Observed state of the ManagedSeedSet.
	// +optional
	Status ManagedSeedSetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ManagedSeedSetList is a list of ManagedSeedSets.
type ManagedSeedSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ManagedSeedSet `json:"items"`
}

// ManagedSeedSetSpec is the desired state of a ManagedSeedSet.
type ManagedSeedSetSpec struct {
	// Number of ManagedSeeds. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Labels of the ManagedSeeds and Shoots that belong to the set. Both templates must have them.
	// Not empty. Immutable.
	Selector metav1.LabelSelector `json:"selector"`
	// Template of the ManagedSeeds.
	Template ManagedSeedTemplate `json:"template"`
	// Template of the Shoots. `replica-name` in domains is replaced by the name of the replica.
	ShootTemplate ShootTemplate `json:"shootTemplate"`
	// Strategy for updates of the replicas.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
	// Number of revisions to retain. Immutable. Default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// ManagedSeedTemplate is a template of ManagedSeeds.
type ManagedSeedTemplate struct {
	// Labels and annotations of the ManagedSeeds.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the ManagedSeeds, without `shoot`.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty"`
}

// ShootTemplate is a template of Shoots.
type ShootTemplate struct {
	// Labels and annotations of the Shoots.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the Shoots.
	// +optional
	Spec gardencorev1beta1.ShootSpec `json:"spec,omitempty"`
}

// UpdateStrategy is the strategy for updates of the replicas.
type UpdateStrategy struct {
	// Type: `RollingUpdate`, the only value. Default: `RollingUpdate`.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type *UpdateStrategyType `json:"type,omitempty"`
	// Settings of the rolling update.
	// +optional
	RollingUpdate *RollingUpdateStrategy `json:"rollingUpdate,omitempty"`
}

// UpdateStrategyType is the type of an UpdateStrategy.
// +kubebuilder:validation:Enum=RollingUpdate
type UpdateStrategyType string

// RollingUpdateStrategyType updates one replica after the other, the highest number first.
const RollingUpdateStrategyType UpdateStrategyType = "RollingUpdate"

// RollingUpdateStrategy holds settings of a rolling update.
type RollingUpdateStrategy struct {
	// Number of the first replica to update; replicas with lower numbers stay unchanged. Default:
	// 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Partition *int32 `json:"partition,omitempty"`
}

// ManagedSeedSetStatus is the observed state of a ManagedSeedSet.
type ManagedSeedSetStatus struct {
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Number of replicas.
	// +optional
	Replicas int32 `json:"replicas"`
	// Number of replicas that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Number of the next replica. Never decreases.
	// +optional
	NextReplicaNumber int32 `json:"nextReplicaNumber,omitempty"`
	// Number of replicas of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// Number of replicas of the new revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// Revision of the replicas that are not updated yet.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// Revision of the updated replicas.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// Number of times that two revisions had the same hash. Never decreases.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Conditions of the set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Replica that must be finished before the next one is handled.
	// +optional
	PendingReplica *PendingReplica `json:"pendingReplica,omitempty"`
}

// PendingReplica is a replica that is being created, updated or deleted.
type PendingReplica struct {
	// Name of the replica.
	Name string `json:"name"`
	// Reason for the wait.
	Reason PendingReplicaReason `json:"reason"`
	// Start of the wait.
	Since metav1.Time `json:"since"`
	// Number of retries of a failed operation on the Shoot.
	// +optional
	Retries *int32 `json:"retries,omitempty"`
}

// PendingReplicaReason is the reason why the set waits for a replica.
// +kubebuilder:validation:Enum=ShootReconciling;ShootDeleting;ShootReconcileFailed;ShootDeleteFailed;ManagedSeedPreparing;ManagedSeedDeleting;SeedNotReady;ShootNotHealthy
type PendingReplicaReason string

const (
	// ShootReconcilingReason means the Shoot is being reconciled.
	ShootReconcilingReason PendingReplicaReason = "ShootReconciling"
	// ShootDeletingReason means the Shoot is being deleted.
	ShootDeletingReason PendingReplicaReason = "ShootDeleting"
	// ShootReconcileFailedReason means the Shoot could not be reconciled.
	ShootReconcileFailedReason PendingReplicaReason = "ShootReconcileFailed"
	// ShootDeleteFailedReason means the Shoot could not be deleted.
	ShootDeleteFailedReason PendingReplicaReason = "ShootDeleteFailed"
	// ManagedSeedPreparingReason means the ManagedSeed is being prepared.
	ManagedSeedPreparingReason PendingReplicaReason = "ManagedSeedPreparing"
	// ManagedSeedDeletingReason means the ManagedSeed is being deleted.
	ManagedSeedDeletingReason PendingReplicaReason = "ManagedSeedDeleting"
	// SeedNotReadyReason means the Seed is not ready.
	SeedNotReadyReason PendingReplicaReason = "SeedNotReady"
	// ShootNotHealthyReason means the Shoot is not healthy.
	ShootNotHealthyReason PendingReplicaReason = "ShootNotHealthy"
)
