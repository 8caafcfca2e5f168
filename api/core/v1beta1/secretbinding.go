// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=secretbindings,singular=secretbinding,shortName=sb,categories=gardener
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.provider.type`,description="Provider that the credentials are for."
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.secretRef.name`,description="Secret with the credentials."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// SecretBinding lets Shoots of a Project use credentials. Deprecated: CredentialsBinding of
// security.gardener.cloud replaces it.
type SecretBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Secret with the credentials. Immutable. Default namespace: the namespace of the binding.
	// +kubebuilder:validation:XValidation:rule="(has(self.name) ? self.name : '') == (has(oldSelf.name) ? oldSelf.name : '')",message="secretRef is immutable"
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Quotas that limit the use of the credentials. Immutable. Default namespace: the namespace of
	// the binding.
	// +optional
	// +listType=atomic
	Quotas []corev1.ObjectReference `json:"quotas,omitempty"`
	// Provider that the credentials are for. Immutable once it is set. Required for new bindings.
	// +optional
	Provider *SecretBindingProvider `json:"provider,omitempty"`
}

// +kubebuilder:object:root=true

// SecretBindingList is a list of SecretBindings.
type SecretBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []SecretBinding `json:"items"`
}

// SecretBindingProvider is the provider that credentials are for.
type SecretBindingProvider struct {
	// Type of the provider; several in old bindings, separated by commas.
	Type string `json:"type"`
}
