// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=operatingsystemconfigs,shortName=osc,singular=operatingsystemconfig
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Purpose",type=string,JSONPath=`.spec.purpose`,description="What the configuration is for."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// OperatingSystemConfig requests the operating system configuration of a worker pool.
type OperatingSystemConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec OperatingSystemConfigSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status OperatingSystemConfigStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *OperatingSystemConfig) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *OperatingSystemConfig) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// OperatingSystemConfigList is a list of operatingsystemconfigs.
type OperatingSystemConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []OperatingSystemConfig `json:"items"`
}

// OperatingSystemConfigPurpose is the purpose of a configuration.
// +kubebuilder:validation:Enum=provision;reconcile
type OperatingSystemConfigPurpose string

const (
	// OperatingSystemConfigPurposeProvision is a configuration that becomes the user data of new
	// machines.
	OperatingSystemConfigPurposeProvision OperatingSystemConfigPurpose = "provision"
	// OperatingSystemConfigPurposeReconcile is a configuration that the node agent applies to
	// running machines.
	OperatingSystemConfigPurposeReconcile OperatingSystemConfigPurpose = "reconcile"
)

// OperatingSystemConfigSpec is the desired state of an OperatingSystemConfig.
type OperatingSystemConfigSpec struct {
	DefaultSpec `json:",inline"`
	// Configuration of the container runtime.
	// +optional
	CRIConfig *CRIConfig `json:"criConfig,omitempty"`
	// Purpose of the configuration: `provision` (user data of new machines) or `reconcile` (applied
	// by the node agent). Immutable.
	Purpose OperatingSystemConfigPurpose `json:"purpose"`
	// Systemd units.
	// +optional
	// +listType=map
	// +listMapKey=name
	Units []Unit `json:"units,omitempty"`
	// Files to write. A path may occur more than once, for different hosts.
	// +optional
	// +listType=atomic
	Files []File `json:"files,omitempty"`
	// Target state of in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
}

// OperatingSystemConfigStatus is the observed state of an OperatingSystemConfig.
type OperatingSystemConfigStatus struct {
	DefaultStatus `json:",inline"`
	// Systemd units that the extension adds.
	// +optional
	// +listType=map
	// +listMapKey=name
	ExtensionUnits []Unit `json:"extensionUnits,omitempty"`
	// Files that the extension adds.
	// +optional
	// +listType=atomic
	ExtensionFiles []File `json:"extensionFiles,omitempty"`
	// Secret with the generated configuration, for purpose `provision`.
	// +optional
	CloudConfig *CloudConfig `json:"cloudConfig,omitempty"`
	// Procedure for in-place updates of this operating system.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
}

// CloudConfig refers to the generated configuration.
type CloudConfig struct {
	// Secret whose key `cloud_config` holds the configuration.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// InPlaceUpdates is the target state of in-place updates.
type InPlaceUpdates struct {
	// Version of the operating system.
	OperatingSystemVersion string `json:"operatingSystemVersion"`
	// Version of the kubelet.
	KubeletVersion string `json:"kubelet"`
	// Rotations of credentials for the machines.
	// +optional
	CredentialsRotation *CredentialsRotation `json:"credentialsRotation,omitempty"`
}

// CredentialsRotation holds rotations of credentials for the machines.
type CredentialsRotation struct {
	// Rotation of the certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`
	// Rotation of the service account key.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
}

// CARotation is a rotation of the certificate authorities.
type CARotation struct {
	// Time at which the rotation was started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// ServiceAccountKeyRotation is a rotation of the service account key.
type ServiceAccountKeyRotation struct {
	// Time at which the rotation was started.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`
}

// InPlaceUpdatesStatus defines the procedure for in-place updates.
type InPlaceUpdatesStatus struct {
	// Update of the operating system.
	// +optional
	OSUpdate *OSUpdate `json:"osUpdate,omitempty"`
}

// OSUpdate is the command that updates the operating system.
type OSUpdate struct {
	// Command to run.
	Command string `json:"command"`
	// Arguments of the command.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
}
