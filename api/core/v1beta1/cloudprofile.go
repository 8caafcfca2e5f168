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

// CloudProfile is what an infrastructure offers to Shoots: Kubernetes versions, machine images and types, volume types,
// regions.
type CloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// What is offered.
	// +optional
	Spec CloudProfileSpec `json:"spec,omitempty"`
	// How the versions stand.
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

// CloudProfileSpec says what is offered.
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
	// Seeds that Shoots of this profile may use. Unset: all of the same provider.
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
	// Limits of Shoots.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
	// Capabilities by which machine images and types are matched. For each, the most important value comes first.
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

// ExpirableVersion is a version and how long it is good for.
type ExpirableVersion struct {
	// Version, as a full semantic version; unique within the list.
	Version string `json:"version"`
	// Time from which the version must not be used. Excludes `lifecycle`. Deprecated.
	// +optional
	ExpirationDate *metav1.Time `json:"expirationDate,omitempty"`
	// How the version stands: `preview`, `supported` or `deprecated`. Excludes `lifecycle`. Deprecated.
	// +optional
	Classification *VersionClassification `json:"classification,omitempty"`
	// How the version stands, over time.
	// +optional
	// +listType=atomic
	Lifecycle []LifecycleStage `json:"lifecycle,omitempty"`
}

// LifecycleStage is a stage in the life of a version.
type LifecycleStage struct {
	// How the version stands in this stage: `unavailable`, `preview`, `supported`, `deprecated` or `expired`.
	Classification VersionClassification `json:"classification"`
	// Begin of the stage. Unset in the first stage: it has always been.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
}

// VersionClassification is how a version stands.
// +kubebuilder:validation:Enum=unavailable;preview;supported;deprecated;expired
type VersionClassification string

const (
	// ClassificationUnavailable means the version cannot be used yet.
	ClassificationUnavailable VersionClassification = "unavailable"
	// ClassificationPreview means the version can be tried; no Shoot is raised to it by itself.
	ClassificationPreview VersionClassification = "preview"
	// ClassificationSupported means the version is recommended.
	ClassificationSupported VersionClassification = "supported"
	// ClassificationDeprecated means the version should be left.
	ClassificationDeprecated VersionClassification = "deprecated"
	// ClassificationExpired means the version must not be used for new clusters, and Shoots are raised from it.
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
	// Restrictions of access that Shoots in the region may ask for.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessRestrictions []AccessRestriction `json:"accessRestrictions,omitempty"`
}

// AvailabilityZone is an availability zone and what it lacks.
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

// Limits are limits of Shoots.
type Limits struct {
	// Greatest number of nodes, over all pools. Unset: no limit.
	// +optional
	MaxNodesTotal *int32 `json:"maxNodesTotal,omitempty"`
}

// Bastion holds machines of bastions.
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
	// Version of the image. Default: the newest that is supported.
	// +optional
	Version *string `json:"version,omitempty"`
}

// BastionMachineType is the machine type of bastions.
type BastionMachineType struct {
	// Name of a machine type of the profile.
	Name string `json:"name"`
}

// CloudProfileStatus says how the versions of a CloudProfile stand.
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

// KubernetesStatus says how Kubernetes versions stand.
type KubernetesStatus struct {
	// Versions.
	// +optional
	// +listType=map
	// +listMapKey=version
	Versions []ExpirableVersionStatus `json:"versions,omitempty"`
}

// MachineImageStatus says how versions of a machine image stand.
type MachineImageStatus struct {
	// Name of the image.
	Name string `json:"name"`
	// Versions.
	// +optional
	// +listType=map
	// +listMapKey=version
	Versions []ExpirableVersionStatus `json:"versions,omitempty"`
}

// ExpirableVersionStatus says how a version stands now.
type ExpirableVersionStatus struct {
	// Version.
	Version string `json:"version"`
	// How it stands.
	Classification VersionClassification `json:"classification"`
}
