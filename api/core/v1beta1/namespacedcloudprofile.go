// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=namespacedcloudprofiles,singular=namespacedcloudprofile,shortName=nsprofile;nscpfl,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.cloudProfileSpec.type`,description="Provider of the infrastructure."
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parent.name`,description="CloudProfile that it builds on."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// NamespacedCloudProfile is a CloudProfile for one Project: a parent CloudProfile with additions
// and changes.
type NamespacedCloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the NamespacedCloudProfile.
	// +optional
	Spec NamespacedCloudProfileSpec `json:"spec,omitempty"`
	// Observed state of the NamespacedCloudProfile.
	// +optional
	Status NamespacedCloudProfileStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// NamespacedCloudProfileList is a list of NamespacedCloudProfiles.
type NamespacedCloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []NamespacedCloudProfile `json:"items"`
}

// NamespacedCloudProfileSpec holds the additions and changes of a NamespacedCloudProfile.
type NamespacedCloudProfileSpec struct {
	// Certificates, in PEM form, that all machines trust, in addition to the parent's.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Kubernetes versions of the parent with another expiration date. A classification is not
	// allowed.
	// +optional
	Kubernetes *KubernetesSettings `json:"kubernetes,omitempty"`
	// Machine images: new ones, new versions, or another expiration date for a version of the
	// parent.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineImages []MachineImage `json:"machineImages,omitempty"`
	// Machine types that the parent does not have.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineTypes []MachineType `json:"machineTypes,omitempty"`
	// Volume types that the parent does not have.
	// +optional
	// +listType=map
	// +listMapKey=name
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty"`
	// Parent CloudProfile. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="parent is immutable"
	Parent NamespacedCloudProfileParent `json:"parent"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Limits on Shoots; they override the parent's.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// NamespacedCloudProfileParent refers to the parent CloudProfile of a NamespacedCloudProfile.
type NamespacedCloudProfileParent struct {
	// Kind: `CloudProfile`, the only value.
	// +kubebuilder:validation:Enum=CloudProfile
	Kind string `json:"kind"`
	// Name of the CloudProfile.
	Name string `json:"name"`
}

// NamespacedCloudProfileStatus is the observed state of a NamespacedCloudProfile.
type NamespacedCloudProfileStatus struct {
	// Complete profile: the parent with the additions and changes of this one. Set by the
	// controller.
	// +optional
	CloudProfileSpec *CloudProfileSpec `json:"cloudProfileSpec,omitempty"`
	// Generation that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
