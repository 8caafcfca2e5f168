// SPDX-License-Identifier: Apache-2.0

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
	// Maximum update by maintenance: `patch`, `minor` or `major`. Default: `major`, except in a
	// NamespacedCloudProfile.
	// +optional
	UpdateStrategy *MachineImageUpdateStrategy `json:"updateStrategy,omitempty"`
}

// MachineImageUpdateStrategy is the maximum update by maintenance.
// +kubebuilder:validation:Enum=patch;minor;major
type MachineImageUpdateStrategy string

const (
	// UpdateStrategyPatch updates to the newest patch version of the same minor version.
	UpdateStrategyPatch MachineImageUpdateStrategy = "patch"
	// UpdateStrategyMinor updates to the newest minor version of the same major version.
	UpdateStrategyMinor MachineImageUpdateStrategy = "minor"
	// UpdateStrategyMajor updates to the newest version.
	UpdateStrategyMajor MachineImageUpdateStrategy = "major"
)

// MachineImageVersion is a version of a machine image with the features it supports.
type MachineImageVersion struct {
	ExpirableVersion `json:",inline"`
	// Container runtimes that the image supports. Default: `containerd`.
	// +optional
	// +listType=atomic
	CRI []CRI `json:"cri,omitempty"`
	// CPU architectures that the image exists for: `amd64`, `arm64`. Default: `amd64`, unless the
	// profile defines capabilities.
	// +optional
	// +listType=atomic
	Architectures []string `json:"architectures,omitempty"`
	// Range of kubelet versions that the image supports, for example `>= 1.33`. Unset: all.
	// +optional
	KubeletVersionConstraint *string `json:"kubeletVersionConstraint,omitempty"`
	// In-place updates to this version.
	// +optional
	InPlaceUpdates *InPlaceUpdates `json:"inPlaceUpdates,omitempty"`
	// Combinations of capabilities that the image exists for.
	// +optional
	// +listType=atomic
	CapabilityFlavors []MachineImageFlavor `json:"capabilityFlavors,omitempty"`
}

// InPlaceUpdates configures in-place updates of machines to a version.
type InPlaceUpdates struct {
	// Whether in-place updates are supported. Default: false.
	Supported bool `json:"supported"`
	// Oldest version that can be updated in place.
	// +optional
	MinVersionForUpdate *string `json:"minVersionForUpdate,omitempty"`
}

// CapabilityDefinition is a capability with its possible values.
type CapabilityDefinition struct {
	// Name of the capability; unique within the list. `architecture` is always included.
	Name string `json:"name"`
	// Possible values, in order of preference.
	// +listType=atomic
	Values CapabilityValues `json:"values"`
}

// CapabilityValues holds values of a capability.
type CapabilityValues []string

// Capabilities holds values by capability.
type Capabilities map[string]CapabilityValues

// MachineImageFlavor is a combination of capabilities, given as a map of values by capability.
type MachineImageFlavor = Capabilities

// MachineType is a type of machine.
type MachineType struct {
	// Number of CPUs. Default: 0.
	// +optional
	CPU resource.Quantity `json:"cpu"`
	// Number of GPUs. Default: 0.
	// +optional
	GPU resource.Quantity `json:"gpu"`
	// Amount of memory. Default: 0.
	// +optional
	Memory resource.Quantity `json:"memory"`
	// Name of the type; unique within the list.
	Name string `json:"name"`
	// Storage that machines of the type have for their root volume.
	// +optional
	Storage *MachineTypeStorage `json:"storage,omitempty"`
	// Whether new pools may use the type. Default: true.
	// +optional
	// +kubebuilder:default=true
	Usable *bool `json:"usable,omitempty"`
	// CPU architecture: `amd64` or `arm64`. Default: `amd64`, unless the profile defines
	// capabilities.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture *string `json:"architecture,omitempty"`
	// Capabilities of the type.
	// +optional
	Capabilities Capabilities `json:"capabilities,omitempty"`
	// Settings of the machine-controller-manager for pools of the type that do not set their own.
	// +optional
	MachineControllerManagerSettings *CloudProfileMachineControllerManagerSettings `json:"machineControllerManager,omitempty"`
}

// CloudProfileMachineControllerManagerSettings holds settings of the machine-controller-manager for
// a machine type.
type CloudProfileMachineControllerManagerSettings struct {
	// Timeout for a machine of the type to join.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
}

// MachineTypeStorage is storage of a machine type. At most one of `size` and `minSize` is set.
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
	// Minimum size of the storage. Overrides the minimum of the volume type.
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
	// Minimum size of a volume.
	// +optional
	MinSize *resource.Quantity `json:"minSize,omitempty"`
}

const (
	// VolumeClassStandard is the usual class of volumes.
	VolumeClassStandard = "standard"
	// VolumeClassPremium is a class of fast volumes.
	VolumeClassPremium = "premium"
)
