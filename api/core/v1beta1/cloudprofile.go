// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=cloudprofiles,singular=cloudprofile,shortName=cprofile;cpfl,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Provider of the infrastructure."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// CloudProfile is the offer of an infrastructure to Shoots: Kubernetes versions, machine images and
// types, volume types, regions.
type CloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the CloudProfile.
	// +optional
	Spec CloudProfileSpec `json:"spec,omitempty"`
	// Observed state of the CloudProfile.
	// +optional
	Status CloudProfileStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// CloudProfileList is a list of CloudProfiles.
type CloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []CloudProfile `json:"items"`
}

// CloudProfileSpec is the desired state of a CloudProfile: the offer of an infrastructure.
type CloudProfileSpec struct {
	// Certificates, in PEM form, that all machines trust.
	// +optional
	CABundle *string `json:"caBundle,omitempty"`
	// Kubernetes versions.
	Kubernetes KubernetesSettings `json:"kubernetes"`
	// Machine images.
	// +listType=map
	// +listMapKey=name
	MachineImages []MachineImage `json:"machineImages"`
	// Machine types.
	// +listType=map
	// +listMapKey=name
	MachineTypes []MachineType `json:"machineTypes"`
	// Configuration in the provider's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Regions and their zones.
	// +listType=map
	// +listMapKey=name
	Regions []Region `json:"regions"`
	// Seeds that Shoots of this profile may use. Unset: all Seeds of the same provider.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty"`
	// Provider of the infrastructure.
	Type string `json:"type"`
	// Volume types.
	// +optional
	// +listType=map
	// +listMapKey=name
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty"`
	// Machines of bastions. Unset: the smallest type and the first image.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty"`
	// Limits on Shoots.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
	// Capabilities that match machine images with machine types. The values of each are in order of
	// preference.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineCapabilities []CapabilityDefinition `json:"machineCapabilities,omitempty"`
}

// KubernetesSettings holds Kubernetes versions.
type KubernetesSettings struct {
	// Versions on offer.
	// +optional
	// +listType=map
	// +listMapKey=version
	Versions []ExpirableVersion `json:"versions,omitempty"`
}

// ExpirableVersion is a version with its lifecycle.
type ExpirableVersion struct {
	// Version, as a full semantic version; unique within the list.
	Version string `json:"version"`
	// Time from which the version must not be used. Excludes `lifecycle`. Deprecated.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty"`
	// Classification of the version: `preview`, `supported` or `deprecated`. Excludes `lifecycle`.
	// Deprecated.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty"`
	// Stages of the version over time.
	// +optional
	// +listType=atomic
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty"`
}

// LifecycleStage is a stage in the lifecycle of a version.
type LifecycleStage struct {
	// Classification of the version in this stage: `unavailable`, `preview`, `supported`,
	// `deprecated` or `expired`.
	Classification VersionClassification `json:"classification"`
	// Start of the stage. Unset in the first stage: the stage has no start.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
}

// VersionClassification is the classification of a version.
// +kubebuilder:validation:Enum=unavailable;preview;supported;deprecated;expired
type VersionClassification string

const (
	// ClassificationUnavailable means the version cannot be used yet.
	ClassificationUnavailable VersionClassification = "unavailable"
	// ClassificationPreview means the version can be tried; no Shoot is updated to it
	// automatically.
	ClassificationPreview VersionClassification = "preview"
	// ClassificationSupported means the version is recommended.
	ClassificationSupported VersionClassification = "supported"
	// ClassificationDeprecated means Shoots should move to another version.
	ClassificationDeprecated VersionClassification = "deprecated"
	// ClassificationExpired means the version must not be used for new clusters, and existing
	// Shoots are updated.
	ClassificationExpired VersionClassification = "expired"
)

// Region is a region with zones.
type Region struct {
	// Name of the region; unique within the list.
	Name string `json:"name"`
	// Availability zones.
	// +optional
	// +listType=map
	// +listMapKey=name
	Zones []AvailabilityZone `json:"zones,omitempty"`
	// Labels, for people and tools.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Access restrictions that Shoots in the region may request.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty"`
}

// AvailabilityZone is an availability zone with the types that it lacks.
type AvailabilityZone struct {
	// Name of the zone; unique within the region.
	Name string `json:"name"`
	// Machine types that the zone lacks.
	// +optional
	// +listType=atomic
	UnavailableMachineTypes []string `json:"unavailableMachineTypes,omitempty"`
	// Volume types that the zone lacks.
	// +optional
	// +listType=atomic
	UnavailableVolumeTypes []string `json:"unavailableVolumeTypes,omitempty"`
}

// Limits holds limits on Shoots.
type Limits struct {
	// Maximum number of nodes, over all pools. Unset: no limit.
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty"`
}

// Bastion configures machines of bastions.
type Bastion struct {
	// Machine image.
	// +optional
	MachineImage *BastionMachineImage `json:"machineImage,omitempty"`
	// Machine type.
	// +optional
	MachineType *BastionMachineType `json:"machineType,omitempty"`
}

// BastionMachineImage is the machine image of bastions.
type BastionMachineImage struct {
	// Name of an image of the profile.
	Name string `json:"name"`
	// Version of the image. Default: the newest supported one.
	// +optional
	Version *string `json:"version,omitempty"`
}

// BastionMachineType is the machine type of bastions.
type BastionMachineType struct {
	// Name of a machine type of the profile.
	Name string `json:"name"`
}

// CloudProfileStatus holds the classifications of the versions of a CloudProfile.
type CloudProfileStatus struct {
	// Kubernetes versions.
	// +optional
	Kubernetes *KubernetesStatus `json:"kubernetes,omitempty"`
	// Versions of machine images.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineImages []MachineImageStatus `json:"machineImages,omitempty"`
}

// KubernetesStatus holds the classifications of Kubernetes versions.
type KubernetesStatus struct {
	// Versions.
	// +optional
	// +listType=map
	// +listMapKey=version
	Versions []ExpirableVersionStatus `json:"versions,omitempty"`
}

// MachineImageStatus holds the classifications of versions of a machine image.
type MachineImageStatus struct {
	// Name of the image.
	Name string `json:"name"`
	// Versions.
	// +optional
	// +listType=map
	// +listMapKey=version
	Versions []ExpirableVersionStatus `json:"versions,omitempty"`
}

// ExpirableVersionStatus is the current classification of a version.
type ExpirableVersionStatus struct {
	// Version.
	Version string `json:"version"`
	// Classification of the version now.
	Classification VersionClassification `json:"classification"`
}
