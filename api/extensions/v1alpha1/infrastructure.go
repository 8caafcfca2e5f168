// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=infrastructures,shortName=infra,singular=infrastructure
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="Region of the infrastructure."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Infrastructure requests the resources that a cluster needs before it has machines: networks,
// routers, security groups, roles.
type Infrastructure struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec InfrastructureSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status InfrastructureStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *Infrastructure) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *Infrastructure) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// InfrastructureList is a list of infrastructures.
type InfrastructureList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Infrastructure `json:"items"`
}

// InfrastructureSpec is the desired state of an Infrastructure.
type InfrastructureSpec struct {
	DefaultSpec `json:",inline"`
	// Region of the infrastructure. Immutable.
	Region string `json:"region"`
	// Secret with the credentials for the infrastructure.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Public SSH key for the machines, in OpenSSH format.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
}

// InfrastructureStatus is the observed state of an Infrastructure.
type InfrastructureStatus struct {
	DefaultStatus `json:",inline"`
	// CIDR of the node network, if the extension chose it.
	// +optional
	NodesCIDR *string `json:"nodesCIDR,omitempty"`
	// CIDRs of traffic from the cluster to the outside. Unset if they are not stable.
	// +optional
	// +listType=atomic
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
	// Networks of the cluster that the infrastructure chose.
	// +optional
	Networking *InfrastructureStatusNetworking `json:"networking,omitempty"`
}

// InfrastructureStatusNetworking holds networks that the infrastructure chose.
type InfrastructureStatusNetworking struct {
	// CIDRs of the pod network.
	// +optional
	// +listType=atomic
	Pods []string `json:"pods,omitempty"`
	// CIDRs of the node network.
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// CIDRs of the service network.
	// +optional
	// +listType=atomic
	Services []string `json:"services,omitempty"`
}
