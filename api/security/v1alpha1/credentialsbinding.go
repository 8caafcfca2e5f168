// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=credentialsbindings,singular=credentialsbinding,shortName=cb,categories=gardener
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.provider.type`,description="Provider that the credentials are for."
// +kubebuilder:printcolumn:name="Credentials Kind",type=string,JSONPath=`.credentialsRef.kind`,description="Kind of the credentials."
// +kubebuilder:printcolumn:name="Credentials Namespace",type=string,JSONPath=`.credentialsRef.namespace`,description="Namespace of the credentials."
// +kubebuilder:printcolumn:name="Credentials Name",type=string,JSONPath=`.credentialsRef.name`,description="Name of the credentials."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// CredentialsBinding lets Shoots of a Project use credentials.
type CredentialsBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Provider that the credentials are for. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provider is immutable"
	Provider CredentialsBindingProvider `json:"provider"`
	// Credentials: a Secret (v1), an InternalSecret (core.gardener.cloud/v1beta1) or a
	// WorkloadIdentity (security.gardener.cloud/v1alpha1). Immutable. Default namespace: the
	// namespace of the binding.
	// +kubebuilder:validation:XValidation:rule="(has(self.apiVersion) ? self.apiVersion : '') == (has(oldSelf.apiVersion) ? oldSelf.apiVersion : '') && (has(self.kind) ? self.kind : '') == (has(oldSelf.kind) ? oldSelf.kind : '') && (has(self.name) ? self.name : '') == (has(oldSelf.name) ? oldSelf.name : '')",message="credentialsRef is immutable"
	CredentialsRef corev1.ObjectReference `json:"credentialsRef"`
	// Quotas that limit the use of the credentials. Immutable. Default namespace: the namespace of
	// the binding.
	// +optional
	// +listType=atomic
	Quotas []corev1.ObjectReference `json:"quotas,omitempty"`
}

// +kubebuilder:object:root=true

// CredentialsBindingList is a list of CredentialsBindings.
type CredentialsBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []CredentialsBinding `json:"items"`
}

// CredentialsBindingProvider is the provider that credentials are for.
type CredentialsBindingProvider struct {
	// Type of the provider; exactly one.
	Type string `json:"type"`
}
