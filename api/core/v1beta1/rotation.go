// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CredentialsRotationPhase is the phase of a rotation in two steps.
type CredentialsRotationPhase string

const (
	// RotationPreparing means new credentials are being introduced alongside the old ones.
	RotationPreparing CredentialsRotationPhase = "Preparing"
	// RotationPreparingWithoutWorkersRollout is RotationPreparing without a replacement of machines
	// for now.
	RotationPreparingWithoutWorkersRollout CredentialsRotationPhase = "PreparingWithoutWorkersRollout"
	// RotationWaitingForWorkersRollout means the rotation is prepared except for machines that are
	// replaced manually.
	RotationWaitingForWorkersRollout CredentialsRotationPhase = "WaitingForWorkersRollout"
	// RotationPrepared means old and new credentials are both valid, and clients can switch.
	RotationPrepared CredentialsRotationPhase = "Prepared"
	// RotationCompleting means old credentials are being removed.
	RotationCompleting CredentialsRotationPhase = "Completing"
	// RotationCompleted means only the new credentials are valid.
	RotationCompleted CredentialsRotationPhase = "Completed"
)

// ShootCredentials is the state of the credentials of a cluster.
type ShootCredentials struct {
	// Rotations of credentials.
	// +optional
	Rotation *ShootCredentialsRotation `json:"rotation,omitempty"`
	// Encryption of data in etcd now.
	// +optional
	EncryptionAtRest *EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// ShootCredentialsRotation is the state of rotations of credentials.
type ShootCredentialsRotation struct {
	// Certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`
	// SSH key pair.
	// +optional
	SSHKeypair *ShootSSHKeypairRotation `json:"sshKeypair,omitempty"`
	// Passwords of monitoring and logging.
	// +optional
	Observability *ObservabilityRotation `json:"observability,omitempty"`
	// Key that signs service account tokens.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
	// Key that encrypts data in etcd.
	// +optional
	ETCDEncryptionKey *ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty"`
}

// RotationTimes holds the times of a rotation in two steps.
type RotationTimes struct {
	// Time at which the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
	// Time at which the last rotation was started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// Time at which the last rotation was prepared.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`
	// Time at which the completion of the last rotation was started.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
}

// CARotation is the rotation of the certificate authorities.
type CARotation struct {
	// Phase of the rotation.
	Phase         CredentialsRotationPhase `json:"phase"`
	RotationTimes `json:",inline"`
	// Pools whose machines still have to be replaced.
	// +optional
	// +listType=atomic
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// ServiceAccountKeyRotation is the rotation of the key that signs service account tokens.
type ServiceAccountKeyRotation struct {
	// Phase of the rotation.
	Phase         CredentialsRotationPhase `json:"phase"`
	RotationTimes `json:",inline"`
	// Pools whose machines still have to be replaced.
	// +optional
	// +listType=atomic
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// ETCDEncryptionKeyRotation is the rotation of the key that encrypts data in etcd.
type ETCDEncryptionKeyRotation struct {
	// Phase of the rotation.
	Phase         CredentialsRotationPhase `json:"phase"`
	RotationTimes `json:",inline"`
	// Whether the rotation completes automatically once it is prepared. Deprecated: it will be
	// removed with the rotation in two steps.
	// +optional
	AutoCompleteAfterPrepared *bool `json:"autoCompleteAfterPrepared,omitempty"`
}

// ShootSSHKeypairRotation is the rotation of the SSH key pair.
type ShootSSHKeypairRotation struct {
	// Time at which the last rotation was started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// Time at which the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
}

// ObservabilityRotation is the rotation of the passwords of monitoring and logging.
type ObservabilityRotation struct {
	// Time at which the last rotation was started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
	// Time at which the last rotation was completed.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`
}

// EncryptionAtRest is the encryption of data in etcd now. It follows the spec once all data was
// rewritten.
type EncryptionAtRest struct {
	// Resources that are encrypted in addition to those that always are.
	// +optional
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
	// Encryption provider.
	// +optional
	Provider EncryptionProviderStatus `json:"provider,omitempty"`
}

// EncryptionProviderStatus is the encryption provider in use.
type EncryptionProviderStatus struct {
	// Type of encryption.
	// +optional
	Type EncryptionProviderType `json:"type,omitempty"`
}
