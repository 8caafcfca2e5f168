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

// ManagedSeedSet keeps a number of like ManagedSeeds, each with its Shoot. It lives in namespace `garden`.
type ManagedSeedSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The ManagedSeedSet as declared.
	// +optional
	Spec ManagedSeedSetSpec `json:"spec,omitempty"`
	// The ManagedSeedSet as it is.
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

// ManagedSeedSetSpec declares a ManagedSeedSet.
type ManagedSeedSetSpec struct {
	// Number of ManagedSeeds. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Labels of the ManagedSeeds and Shoots that belong to the set; both templates have them. Not empty. Immutable.
	Selector metav1.LabelSelector `json:"selector"`
	// ManagedSeeds of the set.
	Template ManagedSeedTemplate `json:"template"`
	// Shoots of the set. The text `replica-name` in domains stands for the name of the replica.
	ShootTemplate ShootTemplate `json:"shootTemplate"`
	// How changes reach the replicas.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
	// Number of revisions that are kept. Immutable. Default: 10.
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
	// The ManagedSeeds, without `shoot`.
	// +optional
	Spec ManagedSeedSpec `json:"spec,omitempty"`
}

// ShootTemplate is a template of Shoots.
type ShootTemplate struct {
	// Labels and annotations of the Shoots.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The Shoots.
	// +optional
	Spec gardencorev1beta1.ShootSpec `json:"spec,omitempty"`
}

// UpdateStrategy says how changes reach the replicas.
type UpdateStrategy struct {
	// Type: `RollingUpdate`, the only value. Default: `RollingUpdate`.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type *UpdateStrategyType `json:"type,omitempty"`
	// Settings of the rolling update.
	// +optional
	RollingUpdate *RollingUpdateStrategy `json:"rollingUpdate,omitempty"`
}

// UpdateStrategyType is a way in which changes reach the replicas.
// +kubebuilder:validation:Enum=RollingUpdate
type UpdateStrategyType string

// RollingUpdateStrategyType changes one replica after the other, the highest number first.
const RollingUpdateStrategyType UpdateStrategyType = "RollingUpdate"

// RollingUpdateStrategy holds settings of a rolling update.
type RollingUpdateStrategy struct {
	// Number of the first replica that is changed; those below stay as they are. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Partition *int32 `json:"partition,omitempty"`
}

// ManagedSeedSetStatus is a ManagedSeedSet as it is.
type ManagedSeedSetStatus struct {
	// Generation that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Number of replicas.
	// +optional
	Replicas int32 `json:"replicas"`
	// Number of replicas that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Number of the next replica. Never falls.
	// +optional
	NextReplicaNumber int32 `json:"nextReplicaNumber,omitempty"`
	// Number of replicas of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// Number of replicas of the new revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// Revision of the replicas that were not changed yet.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// Revision of the replicas that were changed.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// Number of times that two revisions had the same hash. Never falls.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Verdicts on the set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Replica that has to change before the next one is worked on.
	// +optional
	PendingReplica *PendingReplica `json:"pendingReplica,omitempty"`
}

// PendingReplica is a replica that is being created, changed or deleted.
type PendingReplica struct {
	// Name of the replica.
	Name string `json:"name"`
	// Why the replica is waited for.
	Reason PendingReplicaReason `json:"reason"`
	// Time since which the replica is waited for.
	Since metav1.Time `json:"since"`
	// Number of times that a failed operation on the Shoot was started again.
	// +optional
	Retries *int32 `json:"retries,omitempty"`
}

// PendingReplicaReason says why a replica is waited for.
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
