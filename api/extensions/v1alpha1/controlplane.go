// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=controlplanes,shortName=cp,singular=controlplane
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ControlPlane requests the provider-specific part of a control plane: cloud controllers, storage
// drivers, their configuration.
type ControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec ControlPlaneSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status ControlPlaneStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *ControlPlane) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *ControlPlane) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// ControlPlaneList is a list of controlplanes.
type ControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ControlPlane `json:"items"`
}

// ControlPlaneSpec is the desired state of a ControlPlane.
type ControlPlaneSpec struct {
	DefaultSpec `json:",inline"`
	// Provider status of the Infrastructure of the same cluster.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`
	// Region of the infrastructure. Immutable.
	Region string `json:"region"`
	// Secret with the credentials for the infrastructure.
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// ControlPlaneStatus is the observed state of a ControlPlane.
type ControlPlaneStatus struct {
	DefaultStatus `json:",inline"`
}
