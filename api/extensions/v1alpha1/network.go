// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=networks,singular=network
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Pod CIDR",type=string,JSONPath=`.spec.podCIDR`,description="CIDR of the pod network."
// +kubebuilder:printcolumn:name="Service CIDR",type=string,JSONPath=`.spec.serviceCIDR`,description="CIDR of the service network."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Network requests the network plugin of a cluster.
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec NetworkSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status NetworkStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *Network) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *Network) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// NetworkList is a list of networks.
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Network `json:"items"`
}

// NetworkSpec is the desired state of a Network.
type NetworkSpec struct {
	DefaultSpec `json:",inline"`
	// CIDR of the pod network. Immutable.
	PodCIDR string `json:"podCIDR"`
	// CIDR of the service network. Immutable.
	ServiceCIDR string `json:"serviceCIDR"`
	// IP families of pod and service network. Default: IPv4.
	// +optional
	// +listType=atomic
	IPFamilies []gardencorev1beta1.IPFamily `json:"ipFamilies,omitempty"`
}

// NetworkStatus is the observed state of a Network.
type NetworkStatus struct {
	DefaultStatus `json:",inline"`
	// IP families that the network plugin serves now. Differs from the spec while a cluster moves
	// to dual-stack.
	// +optional
	// +listType=atomic
	IPFamilies []gardencorev1beta1.IPFamily `json:"ipFamilies,omitempty"`
}
