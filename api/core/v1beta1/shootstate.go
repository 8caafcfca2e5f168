// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=shootstates,singular=shootstate,categories=gardener
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ShootState holds the data that cannot be recreated when the control plane of a Shoot moves: keys,
// certificates and the state of extensions. It has the name of the Shoot.
type ShootState struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Data of the Shoot.
	// +optional
	Spec ShootStateSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true

// ShootStateList is a list of ShootStates.
type ShootStateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ShootState `json:"items"`
}

// ShootStateSpec holds the data of a Shoot.
type ShootStateSpec struct {
	// Data that the gardenlet created.
	// +optional
	// +listType=map
	// +listMapKey=name
	Gardener []GardenerResourceData `json:"gardener,omitempty"`
	// State of extension objects.
	// +optional
	// +listType=atomic
	Extensions []ExtensionResourceState `json:"extensions,omitempty"`
	// Objects that the state of extension objects refers to.
	// +optional
	// +listType=atomic
	Resources []ResourceData `json:"resources,omitempty"`
}

// GardenerResourceData is an item that the gardenlet created.
type GardenerResourceData struct {
	// Name of the item; unique within the list.
	Name string `json:"name"`
	// Type of the item, for example `secret` or `machine-state`.
	Type string `json:"type"`
	// Content.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data,omitempty" pergola:"sensitive"`
	// Labels of the item.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// ExtensionResourceState is the state of an extension object.
type ExtensionResourceState struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Name of the object.
	// +optional
	Name *string `json:"name,omitempty"`
	// Purpose of the object, for kinds that have one.
	// +optional
	Purpose *string `json:"purpose,omitempty"`
	// State, as the extension reported it.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	State *runtime.RawExtension `json:"state,omitempty" pergola:"sensitive"`
	// Objects that the state refers to by name.
	// +optional
	// +listType=atomic
	Resources []NamedResourceReference `json:"resources,omitempty"`
}

// ResourceData is an object that a state refers to, with its content.
type ResourceData struct {
	// Object.
	autoscalingv1.CrossVersionObjectReference `json:",inline"`
	// Content.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data,omitempty" pergola:"sensitive"`
}
