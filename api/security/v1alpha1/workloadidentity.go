// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=workloadidentities,singular=workloadidentity,shortName=wi,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.targetSystem.type`,description="System that the tokens are for."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// WorkloadIdentity is an identity for systems outside of Gardener, which accept a token signed by
// Gardener instead of a secret.
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the WorkloadIdentity.
	// +optional
	Spec WorkloadIdentitySpec `json:"spec,omitempty"`
	// Observed state of the WorkloadIdentity.
	// +optional
	Status WorkloadIdentityStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// WorkloadIdentityList is a list of WorkloadIdentities.
type WorkloadIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []WorkloadIdentity `json:"items"`
}

// WorkloadIdentitySpec is the desired state of a WorkloadIdentity.
type WorkloadIdentitySpec struct {
	// Recipients of the tokens: the claim `aud`. At least one, each once.
	// +listType=atomic
	Audiences []string `json:"audiences"`
	// System that the tokens are for.
	TargetSystem TargetSystem `json:"targetSystem"`
}

// TargetSystem is a system that accepts tokens.
type TargetSystem struct {
	// Type of the system: the type of its provider. Immutable.
	Type string `json:"type"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkloadIdentityStatus is the observed state of a WorkloadIdentity.
type WorkloadIdentityStatus struct {
	// Subject of the tokens: the claim `sub`, composed of namespace, name and UID. Immutable once
	// set.
	// +optional
	Sub string `json:"sub,omitempty"`
}
