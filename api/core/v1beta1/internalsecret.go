// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=internalsecrets,singular=internalsecret,categories=gardener
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.type`,description="What the values are for."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// InternalSecret is a Secret that members of a Project cannot read.
type InternalSecret struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Whether the data can never be changed.
	// +optional
	Immutable *bool `json:"immutable,omitempty"`
	// Values, in base64.
	// +optional
	Data map[string][]byte `json:"data,omitempty" pergola:"sensitive"`
	// Values as plain text; they override `data`.
	// +optional
	StringData map[string]string `json:"stringData,omitempty" pergola:"sensitive"`
	// Purpose of the values. Default: `Opaque`.
	// +optional
	Type corev1.SecretType `json:"type,omitempty"`
}

// +kubebuilder:object:root=true

// InternalSecretList is a list of InternalSecrets.
type InternalSecretList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []InternalSecret `json:"items"`
}
