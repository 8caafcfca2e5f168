// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=backupentries,singular=backupentry,shortName=bec,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec.bucketName`,description="BackupBucket that holds the entry."
// +kubebuilder:printcolumn:name="Seed",type=string,JSONPath=`.spec.seedName`,description="Seed that is responsible."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// BackupEntry is the entry of one Shoot in a BackupBucket. It outlives the Shoot for a grace
// period.
type BackupEntry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the BackupEntry.
	// +optional
	Spec BackupEntrySpec `json:"spec,omitempty"`
	// Observed state of the BackupEntry.
	// +optional
	Status BackupEntryStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// BackupEntryList is a list of BackupEntries.
type BackupEntryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []BackupEntry `json:"items"`
}

// BackupEntrySpec is the desired state of a BackupEntry. Exactly one of `seedName` and `shootRef`
// is set.
type BackupEntrySpec struct {
	// BackupBucket that holds the entry.
	BucketName string `json:"bucketName"`
	// Seed that is responsible for the entry. A new name moves the responsibility, not the data.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Self-hosted Shoot that is responsible for the entry; in the namespace of the entry.
	// Immutable.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty"`
}

// BackupEntryStatus is the observed state of a BackupEntry.
type BackupEntryStatus struct {
	// Operation in progress, or the last one.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// Failure of the last operation; unset after a success.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Seed that holds the entry now. Differs from the Seed in the spec while the entry moves.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Time at which the entry began to move to another Seed.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty"`
}
