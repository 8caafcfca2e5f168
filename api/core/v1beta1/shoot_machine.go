package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachineUpdateStrategy is a way in which updates reach machines.
// +kubebuilder:validation:Enum=AutoRollingUpdate;AutoInPlaceUpdate;ManualInPlaceUpdate
type MachineUpdateStrategy string

const (
	// AutoRollingUpdate replaces machines by new ones.
	AutoRollingUpdate MachineUpdateStrategy = "AutoRollingUpdate"
	// AutoInPlaceUpdate updates machines as they are, one after the other.
	AutoInPlaceUpdate MachineUpdateStrategy = "AutoInPlaceUpdate"
	// ManualInPlaceUpdate updates machines as they are, when the user says so.
	ManualInPlaceUpdate MachineUpdateStrategy = "ManualInPlaceUpdate"
)

// IsUpdateStrategyInPlace says whether updates leave machines as they are.
func IsUpdateStrategyInPlace(strategy *MachineUpdateStrategy) bool {
	return strategy != nil && (*strategy == AutoInPlaceUpdate || *strategy == ManualInPlaceUpdate)
}

// Machine holds machine type and image.
type Machine struct {
	// Machine type, as offered by the CloudProfile.
	Type string `json:"type"`
	// Machine image. Default: the newest version of the first image of the CloudProfile that fits.
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
	// Version of the image; may be shortened, like a Kubernetes version. Default: the newest of the CloudProfile.
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

// DataVolume is a further volume of a machine.
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
	// Further runtimes on the machines, for example gVisor.
	// +optional
	// +listType=atomic
	ContainerRuntimes []ContainerRuntime `json:"containerRuntimes,omitempty"`
}

// CRIName is the name of a container runtime.
// +kubebuilder:validation:Enum=containerd
type CRIName string

// CRINameContainerD stands for containerd.
const CRINameContainerD CRIName = "containerd"

// ContainerRuntime is a further runtime on machines.
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
	// Settings of the kubelet. They replace those of the Shoot as a whole.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Kubernetes version of the Nodes, at most that of the control plane and three minor versions behind it. Default: that of the
	// control plane.
	// +optional
	Version *string `json:"version,omitempty"`
}

// WorkerSystemComponents says whether system components may run on a pool.
type WorkerSystemComponents struct {
	// Whether system components may run on the pool. Some pool has to allow it. Default: true.
	Allow bool `json:"allow"`
}

// ClusterAutoscalerOptions are settings of the cluster autoscaler for one pool.
type ClusterAutoscalerOptions struct {
	// Share of a node's requests, from 0.0 to 1.0, below which it may be removed.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// The same for GPU requests.
	// +optional
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// How long a node has to be unneeded before it is removed.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// How long a node that is not ready has to be unneeded before it is removed.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// How long a new node may take to become ready.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// MachineControllerManagerSettings are settings of the machine-controller-manager for one pool.
type MachineControllerManagerSettings struct {
	// How long a machine is drained before it is deleted by force. Default: 2h, by the machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineDrainTimeout *metav1.Duration `json:"machineDrainTimeout,omitempty"`
	// How long a machine may be unhealthy before it is replaced. Default: 10m, by the machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineHealthTimeout *metav1.Duration `json:"machineHealthTimeout,omitempty"`
	// How long a machine may take to join. Default: 20m, by the machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineCreationTimeout *metav1.Duration `json:"machineCreationTimeout,omitempty"`
	// How often the eviction of a pod is tried before the machine is deleted by force.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`
	// Node conditions that make a machine unhealthy while they are true.
	// +optional
	// +listType=atomic
	NodeConditions []string `json:"nodeConditions,omitempty"`
	// How long an in-place update may take.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachineInPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	// True never replaces unhealthy machines. Only for in-place updates. Default: false, with in-place updates true.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`
	// How long a failed machine that is preserved stays before it is ended. Default: 96h, by the
	// machine-controller-manager.
	// +optional
	// +kubebuilder:validation:Format=duration
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	// How many failed machines of the pool are preserved at a time without being asked. In pools with system components
	// at most one less than the greatest number of machines. Default: 0.
	// +optional
	AutoPreserveFailedMachineMax *int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}
