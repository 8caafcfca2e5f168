// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=clusters,singular=cluster
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Cluster holds copies of a Shoot, its Seed and its CloudProfile for extensions in the seed. Its
// name is the namespace of the control plane.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Copies of the objects.
	Spec ClusterSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Cluster `json:"items"`
}

// ClusterSpec holds copies of objects.
type ClusterSpec struct {
	// CloudProfile or NamespacedCloudProfile, in the form of a CloudProfile.
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProfile runtime.RawExtension `json:"cloudProfile"`
	// Copy of the Seed.
	// +kubebuilder:pruning:PreserveUnknownFields
	Seed runtime.RawExtension `json:"seed"`
	// Copy of the Shoot.
	// +kubebuilder:pruning:PreserveUnknownFields
	Shoot runtime.RawExtension `json:"shoot"`
}
