package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineImage is a machine image with its versions.
type MachineImage struct {
	// Name of the image; unique within the list.
	Name string `json:"name"`
	// Versions of the image.
	// +listType=map
	// +listMapKey=version
	Versions []MachineImageVersion `json:"versions"`
	// How far maintenance raises the version: `patch`, `minor` or `major`. Default: `major`, unless the profile is one for a
	// Project.
	// +optional
	UpdateStrategy *MachineImageUpdateStrategy `json:"updateStrategy,omitempty"`
}

// MachineImageUpdateStrategy is how far maintenance raises a version.
// +kubebuilder:validation:Enum=patch;minor;major
type MachineImageUpdateStrategy string

const (
	// UpdateStrategyPatch raises to the newest patch version of the same minor version.
	UpdateStrategyPatch MachineImageUpdateStrategy = "patch"
	// UpdateStrategyMinor raises to the newest minor version of the same major version.
	UpdateStrategyMinor MachineImageUpdateStrategy = "minor"
	// UpdateStrategyMajor raises to the newest version.
	UpdateStrategyMajor MachineImageUpdateStrategy = "major"
)

// MachineImageVersion is a version of a machine image and what it supports.
type MachineImageVersion struct {
	ExpirableVersion `json:",inline"`
	// Container runtimes that the image supports. Default: `containerd`.
	// +optional
	// +listType=atomic
	CRI []CRI `json:"cri,omitempty"`
	// CPU architectures that the image exists for: `amd64`, `arm64`. Default: `amd64`, unless the profile defines
	// capabilities.
	// +optional
	// +listType=atomic
	Architectures []string `json:"architectures,omitempty"`
	// Range of kubelet versions that the image supports, for example `>= 1.33`. Unset: all.
	// +optional
	KubeletVersionConstraint *string `json:"kubeletVersionConstraint,omitempty"`
	// Updates to this version that leave the machines as they are.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
	// Combinations of capabilities that the image exists for.
	// +optional
	// +listType=atomic
	CapabilityFlavors []MachineImageFlavor `json:"capabilityFlavors,omitempty"`
}

// InPlaceUpdates says whether machines can be updated to a version as they are.
type InPlaceUpdates struct {
	// Whether they can. Default: false.
	Supported bool `json:"supported"`
	// Oldest version from which they can.
	// +optional
	MinVersionForUpdate *string `json:"minVersionForUpdate,omitempty"`
}

// CapabilityDefinition is a capability with its possible values.
type CapabilityDefinition struct {
	// Name of the capability; unique within the list. `architecture` is always among them.
	Name string `json:"name"`
	// Possible values, the most important first.
	// +listType=atomic
	Values CapabilityValues `json:"values"`
}

// CapabilityValues are values of a capability.
type CapabilityValues []string

// Capabilities are values by capability.
type Capabilities map[string]CapabilityValues

// MachineImageFlavor is a combination of capabilities, given as a map of values by capability.
type MachineImageFlavor = Capabilities

// MachineType is a type of machine.
type MachineType struct {
	// Number of CPUs. Left out it is 0.
	// +optional
	CPU resource.Quantity `json:"cpu"`
	// Number of GPUs. Left out it is 0.
	// +optional
	GPU resource.Quantity `json:"gpu"`
	// Amount of memory. Left out it is 0.
	// +optional
	Memory resource.Quantity `json:"memory"`
	// Name of the type; unique within the list.
	Name string `json:"name"`
	// Storage that machines of the type bring for their root volume.
	// +optional
	Storage *MachineTypeStorage `json:"storage,omitempty"`
	// Whether new pools may use the type. Default: true.
	// +optional
	// +kubebuilder:default=true
	Usable *bool `json:"usable,omitempty"`
	// CPU architecture: `amd64` or `arm64`. Default: `amd64`, unless the profile defines capabilities.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture *string `json:"architecture,omitempty"`
	// Capabilities of the type.
	// +optional
	Capabilities Capabilities `json:"capabilities,omitempty"`
	// Settings of the machine-controller-manager for pools of the type that do not name their own.
	// +optional
	MachineControllerManagerSettings *CloudProfileMachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
}

// CloudProfileMachineControllerManagerSettings are settings of the machine-controller-manager for a machine type.
type CloudProfileMachineControllerManagerSettings struct {
	// How long a machine of the type may take to join.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
}

// MachineTypeStorage is storage that machines bring. At most one of `size` and `minSize` is set.
type MachineTypeStorage struct {
	// Class of the storage, for example `standard`.
	// +optional
	Class string `json:"class"`
	// Size of the storage.
	// +optional
	StorageSize *resource.Quantity `json:"size,omitempty"`
	// Type of the storage.
	// +optional
	Type string `json:"type"`
	// Least size of the storage. Takes precedence over that of the volume type.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

// VolumeType is a type of volume.
type VolumeType struct {
	// Class of the type: `standard` or `premium`.
	Class string `json:"class"`
	// Name of the type; unique within the list.
	Name string `json:"name"`
	// Whether new pools may use the type. Default: true.
	// +optional
	// +kubebuilder:default=true
	Usable *bool `json:"usable,omitempty"`
	// Least size of a volume.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

const (
	// VolumeClassStandard is the usual class of volumes.
	VolumeClassStandard = "standard"
	// VolumeClassPremium is a class of fast volumes.
	VolumeClassPremium = "premium"
)
