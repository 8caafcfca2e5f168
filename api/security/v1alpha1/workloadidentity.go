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

// WorkloadIdentity is an identity for systems outside of Gardener: instead of a secret they are shown a token that
// Gardener signed.
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The WorkloadIdentity as declared.
	// +optional
	Spec WorkloadIdentitySpec `json:"spec,omitempty"`
	// The WorkloadIdentity as it is.
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

// WorkloadIdentitySpec declares a WorkloadIdentity.
type WorkloadIdentitySpec struct {
	// Recipients of the tokens: the claim `aud`. At least one, each once.
	// +listType=atomic
	Audiences []string `json:"audiences"`
	// System that the tokens are for.
	TargetSystem TargetSystem `json:"targetSystem"`
}

// TargetSystem is a system that takes tokens.
type TargetSystem struct {
	// Type of the system: that of its provider. Immutable.
	Type string `json:"type"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkloadIdentityStatus is a WorkloadIdentity as it is.
type WorkloadIdentityStatus struct {
	// Subject of the tokens: the claim `sub`, made of namespace, name and UID. Immutable once it is set.
	// +optional
	Sub string `json:"sub,omitempty"`
}
