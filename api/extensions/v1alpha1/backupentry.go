// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=backupentries,shortName=be,singular=backupentry
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="Region of the infrastructure."
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec.bucketName`,description="Bucket that the entry is part of."
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// BackupEntry represents the backups of one cluster in a bucket.
type BackupEntry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec BackupEntrySpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status BackupEntryStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *BackupEntry) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *BackupEntry) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// BackupEntryList is a list of backupentries.
type BackupEntryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []BackupEntry `json:"items"`
}

// BackupEntrySpec is the desired state of a BackupEntry.
type BackupEntrySpec struct {
	DefaultSpec `json:",inline"`
	// Provider status of the BackupBucket.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	BackupBucketProviderStatus *runtime.RawExtension `json:"backupBucketProviderStatus,omitempty"`
	// Region of the bucket. Immutable.
	Region string `json:"region"`
	// Name of the bucket.
	BucketName string `json:"bucketName"`
	// Secret with the credentials for the object store.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// BackupEntryStatus is the observed state of a BackupEntry.
type BackupEntryStatus struct {
	DefaultStatus `json:",inline"`
}
