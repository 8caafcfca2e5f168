// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=bastions,singular=bastion
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.ingress.ip`,description="Address of the bastion."
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.ingress.hostname`,description="Host name of the bastion."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Bastion requests a machine for SSH access to the nodes of a cluster.
type Bastion struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec BastionSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status BastionStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *Bastion) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *Bastion) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// BastionList is a list of bastions.
type BastionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Bastion `json:"items"`
}

// BastionSpec is the desired state of a Bastion.
type BastionSpec struct {
	DefaultSpec `json:",inline"`
	// User data of the machine.
	UserData []byte `json:"userData" pergola:"sensitive"`
	// Networks that may connect.
	// +listType=atomic
	Ingress []BastionIngressPolicy `json:"ingress"`
}

// BastionIngressPolicy is a network that may connect to a bastion.
type BastionIngressPolicy struct {
	// Network, as in a NetworkPolicy.
	IPBlock networkingv1.IPBlock `json:"ipBlock"`
}

// BastionStatus is the observed state of a Bastion.
type BastionStatus struct {
	DefaultStatus `json:",inline"`
	// Address of the machine.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
