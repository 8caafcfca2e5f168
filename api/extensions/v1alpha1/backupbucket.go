// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=backupbuckets,shortName=bb,singular=backupbucket
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="Region of the infrastructure."
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// BackupBucket requests an object store bucket for backups.
type BackupBucket struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec BackupBucketSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status BackupBucketStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *BackupBucket) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *BackupBucket) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// BackupBucketList is a list of backupbuckets.
type BackupBucketList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []BackupBucket `json:"items"`
}

// BackupBucketSpec is the desired state of a BackupBucket.
type BackupBucketSpec struct {
	DefaultSpec `json:",inline"`
	// Region of the bucket. Immutable.
	Region string `json:"region"`
	// Secret with the credentials for the object store.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// BackupBucketStatus is the observed state of a BackupBucket.
type BackupBucketStatus struct {
	DefaultStatus `json:",inline"`
	// Secret that the extension created for access to this bucket only. It replaces the given
	// credentials.
	// +optional
	GeneratedSecretRef *corev1.SecretReference `json:"generatedSecretRef,omitempty"`
}
