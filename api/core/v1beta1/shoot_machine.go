// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachineUpdateStrategy is a strategy for updating machines.
// +kubebuilder:validation:Enum=AutoRollingUpdate;AutoInPlaceUpdate;ManualInPlaceUpdate
type MachineUpdateStrategy string

const (
	// AutoRollingUpdate replaces machines by new ones.
	AutoRollingUpdate MachineUpdateStrategy = "AutoRollingUpdate"
	// AutoInPlaceUpdate updates machines in place, one after the other.
	AutoInPlaceUpdate MachineUpdateStrategy = "AutoInPlaceUpdate"
	// ManualInPlaceUpdate updates machines in place when the user requests it.
	ManualInPlaceUpdate MachineUpdateStrategy = "ManualInPlaceUpdate"
)

// IsUpdateStrategyInPlace reports whether the strategy updates machines in place.
func IsUpdateStrategyInPlace(strategy *MachineUpdateStrategy) bool {
	return strategy != nil && (*strategy == AutoInPlaceUpdate || *strategy == ManualInPlaceUpdate)
}

// Machine holds machine type and image.
type Machine struct {
	// Machine type, as offered by the CloudProfile.
	Type string `json:"type"`
	// Machine image. Default: the newest version of the first matching image of the CloudProfile.
	// +optional
	Image *ShootMachineImage `json:"image,omitempty"`
	// CPU architecture: `amd64` or `arm64`. Default: `amd64`.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture *string `json:"architecture,omitempty"`
}

const (
	// ArchitectureAMD64 is the architecture of x86-64 machines.
	ArchitectureAMD64 = "amd64"
	// ArchitectureARM64 is the architecture of 64-bit ARM machines.
	ArchitectureARM64 = "arm64"
)

// ShootMachineImage is a machine image.
type ShootMachineImage struct {
	// Name of the image, as offered by the CloudProfile.
	Name string `json:"name"`
	// Configuration in the operating system extension's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// Version of the image. It can be shortened, like a Kubernetes version. Default: the newest of
	// the CloudProfile.
	// +optional
	Version *string `json:"version,omitempty"`
}

// Volume is the root volume of a machine.
type Volume struct {
	// Name by which the volume can be referred to.
	// +optional
	Name *string `json:"name,omitempty"`
	// Type of the volume, as offered by the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size of the volume, in the form `50Gi`.
	// +kubebuilder:validation:Pattern=`^\d+Gi$`
	VolumeSize string `json:"size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// DataVolume is an additional volume of a machine.
type DataVolume struct {
	// Name by which the volume can be referred to, at most 15 characters; unique within the list.
	Name string `json:"name"`
	// Type of the volume, as offered by the CloudProfile.
	// +optional
	Type *string `json:"type,omitempty"`
	// Size of the volume, in the form `50Gi`.
	// +kubebuilder:validation:Pattern=`^\d+Gi$`
	VolumeSize string `json:"size"`
	// Whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
}

// CRI holds settings of the container runtime.
type CRI struct {
	// Name of the container runtime: `containerd`, the only value.
	Name CRIName `json:"name"`
	// Additional runtimes on the machines, for example gVisor.
	// +optional
	// +listType=atomic
	ContainerRuntimes []ContainerRuntime `json:"containerRuntimes,omitempty"`
}

// CRIName is the name of a container runtime.
// +kubebuilder:validation:Enum=containerd
type CRIName string

// CRINameContainerD is containerd.
const CRINameContainerD CRIName = "containerd"

// ContainerRuntime is an additional runtime on machines.
type ContainerRuntime struct {
	// Type of the extension, for example `gvisor`.
	Type string `json:"type"`
	// Configuration in the extension's own API.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkerKubernetes holds Kubernetes version and kubelet settings of a pool.
type WorkerKubernetes struct {
	// Settings of the kubelet. They replace the kubelet settings of the Shoot.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Kubernetes version of the Nodes: at most the control plane's, and at most three minor
	// versions older. Default: the control plane's.
	// +optional
	Version *string `json:"version,omitempty"`
}

// WorkerSystemComponents configures system components on a pool.
type WorkerSystemComponents struct {
	// Whether system components may run on the pool. At least one pool must allow it. Default:
	// true.
	Allow bool `json:"allow"`
}

// ClusterAutoscalerOptions holds settings of the cluster autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// Share of a node's requests, from 0.0 to 1.0, below which the node may be removed.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// Share of a node's GPU requests, from 0.0 to 1.0, below which the node may be removed.
	// +optional
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// Time for which a node must be unneeded before it is removed.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// Time for which a node that is not ready must be unneeded before it is removed.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// Timeout for a new node to become ready.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// MachineControllerManagerSettings holds settings of the machine-controller-manager for one pool.
type MachineControllerManagerSettings struct {
	// Time for which a machine is drained before it is forcibly deleted. Default: 2h, by the
	// machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineDrainTimeout *metav1.Duration `json:"machineDrainTimeout,omitempty"`
	// Time for which a machine may be unhealthy before it is replaced. Default: 10m, by the
	// machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineHealthTimeout *metav1.Duration `json:"machineHealthTimeout,omitempty"`
	// Timeout for a machine to join. Default: 20m, by the machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
	// Number of attempts to evict a pod before the machine is forcibly deleted.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`
	// Node conditions that make a machine unhealthy while they are true.
	// +optional
	// +listType=atomic
	NodeConditions []string `json:"nodeConditions,omitempty"`
	// Timeout of an in-place update.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineInPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	// True never replaces unhealthy machines. Only for in-place updates. Default: false; true with
	// in-place updates.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`
	// Time for which a preserved failed machine stays before it is terminated. Default: 96h, by the
	// machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	// Maximum number of failed machines of the pool that are preserved automatically. In pools with
	// system components it must be less than the maximum number of machines. Default: 0.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}
