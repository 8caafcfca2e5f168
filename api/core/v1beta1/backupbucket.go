// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=backupbuckets,singular=backupbucket,shortName=bbc,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.type`,description="Provider of the object store."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.provider.region`,description="Region of the bucket."
// +kubebuilder:printcolumn:name="Seed",type=string,JSONPath=`.spec.seedName`,description="Seed that the bucket is for."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// BackupBucket is a bucket of an object store for backups of etcd. A gardenlet creates one for its
// Seed.
type BackupBucket struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the BackupBucket.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.provider == oldSelf.provider",message="provider is immutable",fieldPath=".provider"
	// +kubebuilder:validation:XValidation:rule="(has(self.seedName) ? self.seedName : '') == (has(oldSelf.seedName) ? oldSelf.seedName : '')",message="seedName is immutable",fieldPath=".seedName"
	Spec BackupBucketSpec `json:"spec,omitempty"`
	// Observed state of the BackupBucket.
	// +optional
	Status BackupBucketStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// BackupBucketList is a list of BackupBuckets.
type BackupBucketList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []BackupBucket `json:"items"`
}

// BackupBucketSpec is the desired state of a BackupBucket. Exactly one of `seedName` and `shootRef`
// is set.
type BackupBucketSpec struct {
	// Object store. Immutable.
	Provider BackupBucketProvider `json:"provider"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Seed that the bucket is for. Immutable.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Secret (v1) or WorkloadIdentity (security.gardener.cloud/v1alpha1) with the credentials for
	// the object store.
	// +required
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
	// Self-hosted Shoot that the bucket is for. Immutable.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty"`
}

// BackupBucketProvider is an object store.
type BackupBucketProvider struct {
	// Type of the provider, as registered by an extension.
	Type string `json:"type"`
	// Region of the bucket.
	Region string `json:"region"`
}

// BackupBucketStatus is the observed state of a BackupBucket.
type BackupBucketStatus struct {
	// Provider-specific status in the extension's own API. Set by the extension.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// Operation in progress, or the last one.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// Failure of the last operation; unset after a success.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Secret that the extension created, with credentials for this bucket only.
	// +optional
	GeneratedSecretRef *corev1.SecretReference `json:"generatedSecretRef,omitempty"`
}
