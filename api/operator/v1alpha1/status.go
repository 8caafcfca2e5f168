// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// GardenStatus is the observed state of a Garden.
type GardenStatus struct {
	// Operator that last reconciled the Garden.
	// +optional
	Gardener *gardencorev1beta1.Gardener `json:"gardener,omitempty"`
	// Conditions of the Garden: `VirtualGardenAPIServerAvailable`, `RuntimeComponentsHealthy`,
	// `VirtualComponentsHealthy` and `ObservabilityComponentsHealthy`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Operation in progress, or the last one.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// Generation of the Garden that the last operation reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Rotations of credentials, and encryption of data. Must be backed up together with the spec.
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`
	// Resources encrypted in etcd. Deprecated: see `credentials.encryptionAtRest`.
	// +optional
	// +listType=atomic
	EncryptedResources []string `json:"encryptedResources,omitempty"`
	// Addresses of the API server.
	// +optional
	// +listType=map
	// +listMapKey=name
	AdvertisedAddresses []AdvertisedAddress `json:"advertisedAddresses,omitempty"`
}

// AdvertisedAddress is an address of the virtual cluster.
type AdvertisedAddress struct {
	// Name of the address, for example `virtual-garden`; unique within the list.
	Name string `json:"name"`
	// URL of the address.
	URL string `json:"url"`
	// Application that the address belongs to, for user interfaces.
	// +optional
	Application *string `json:"application,omitempty"`
}

// Credentials is the state of the credentials of a Garden.
type Credentials struct {
	// Rotations of credentials.
	// +optional
	Rotation *CredentialsRotation `json:"rotation,omitempty"`
	// Encryption of data in etcd now.
	// +optional
	EncryptionAtRest *gardencorev1beta1.EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// CredentialsRotation is the state of rotations of credentials.
type CredentialsRotation struct {
	// Certificate authorities.
	// +optional
	CertificateAuthorities *gardencorev1beta1.CARotation `json:"certificateAuthorities,omitempty"`
	// Key that signs service account tokens.
	// +optional
	ServiceAccountKey *gardencorev1beta1.ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
	// Key that encrypts data in etcd.
	// +optional
	ETCDEncryptionKey *gardencorev1beta1.ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty"`
	// Passwords of monitoring and logging.
	// +optional
	Observability *gardencorev1beta1.ObservabilityRotation `json:"observability,omitempty"`
	// Key that signs workload identity tokens.
	// +optional
	WorkloadIdentityKey *WorkloadIdentityKeyRotation `json:"workloadIdentityKey,omitempty"`
}

// WorkloadIdentityKeyRotation is the rotation of the key that signs workload identity tokens.
type WorkloadIdentityKeyRotation struct {
	// Phase of the rotation.
	Phase gardencorev1beta1.CredentialsRotationPhase `json:"phase"`

	gardencorev1beta1.RotationTimes `json:",inline"`
}
