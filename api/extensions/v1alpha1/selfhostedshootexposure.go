// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=selfhostedshootexposures,shortName=exp,singular=selfhostedshootexposure
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.ingress[0].ip`,description="Address of the exposure."
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.ingress[0].hostname`,description="Host name of the exposure."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// SelfHostedShootExposure requests an endpoint in front of the control plane nodes of a self-hosted
// Shoot.
type SelfHostedShootExposure struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec SelfHostedShootExposureSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status SelfHostedShootExposureStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *SelfHostedShootExposure) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *SelfHostedShootExposure) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// SelfHostedShootExposureList is a list of selfhostedshootexposures.
type SelfHostedShootExposureList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []SelfHostedShootExposure `json:"items"`
}

// SelfHostedShootExposureSpec is the desired state of a SelfHostedShootExposure.
type SelfHostedShootExposureSpec struct {
	DefaultSpec `json:",inline"`
	// Object with the credentials for the infrastructure.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
	// Port of the API server on the nodes.
	Port int32 `json:"port"`
	// Healthy control plane nodes.
	// +listType=atomic
	Endpoints []ControlPlaneEndpoint `json:"endpoints"`
}

// ControlPlaneEndpoint is a node that runs the control plane.
type ControlPlaneEndpoint struct {
	// Name of the node.
	NodeName string `json:"nodeName"`
	// Addresses of the node.
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses"`
}

// SelfHostedShootExposureStatus is the observed state of a SelfHostedShootExposure.
type SelfHostedShootExposureStatus struct {
	DefaultStatus `json:",inline"`
	// Addresses of the API server.
	// +optional
	// +listType=atomic
	Ingress []corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
