// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// BastionReady is the condition type that reports whether a bastion can be used.
const BastionReady gardencorev1beta1.ConditionType = "BastionReady"

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=bastions,singular=bastion,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Shoot",type=string,JSONPath=`.spec.shootRef.name`,description="Shoot that the bastion is for."
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.ingress.ip`,description="Address of the bastion."
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.ingress.hostname`,description="Host name of the bastion."
// +kubebuilder:printcolumn:name="Expires",type=date,JSONPath=`.status.expirationTimestamp`,description="Time at which the bastion is deleted."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Bastion requests a machine for SSH access to the nodes of a Shoot. It lives for an hour unless it
// is extended, and for a day at most.
type Bastion struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Bastion.
	// +optional
	Spec BastionSpec `json:"spec,omitempty"`
	// Observed state of the Bastion.
	// +optional
	Status BastionStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// BastionList is a list of Bastions.
type BastionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Bastion `json:"items"`
}

// BastionSpec is the desired state of a Bastion.
type BastionSpec struct {
	// Shoot that the bastion is for, in the namespace of the Bastion. Its name is immutable.
	// +kubebuilder:validation:XValidation:rule="(has(self.name) ? self.name : '') == (has(oldSelf.name) ? oldSelf.name : '')",message="name of the Shoot is immutable",fieldPath=".name"
	ShootRef corev1.LocalObjectReference `json:"shootRef"`
	// Seed of the Shoot. Set by the API.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// Provider of the Shoot. Set by the API.
	// +optional
	ProviderType *string `json:"providerType,omitempty"`
	// Public SSH key of the person, in OpenSSH format. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="sshPublicKey is immutable"
	SSHPublicKey string `json:"sshPublicKey"`
	// Networks that may connect; at least one.
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
	// Address of the machine.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty"`
	// Conditions of the bastion.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Time at which the lifetime of the bastion was last extended.
	// +optional
	LastHeartbeatTimestamp *metav1.Time `json:"lastHeartbeatTimestamp,omitempty"`
	// Time at which the bastion is deleted.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}
