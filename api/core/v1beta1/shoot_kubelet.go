package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubeletConfig holds settings of the kubelet.
type KubeletConfig struct {
	KubernetesConfig `json:",inline"`
	// Whether CPU limits are enforced. Default: true.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
	// How CPUs are given to containers: `none` or `static`. A change replaces the nodes. Default: `none`.
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty"`
	// Thresholds at which pods are evicted at once. Default: memory 100Mi, file systems and inodes 5%.
	// +optional
	EvictionHard *KubeletConfigEviction `json:"evictionHard,omitempty"`
	// How long pods get to end at a soft eviction, in seconds. Default: 90.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// How much is freed beyond the threshold. Default: 0Mi.
	// +optional
	EvictionMinimumReclaim *KubeletConfigEvictionMinimumReclaim `json:"evictionMinimumReclaim,omitempty"`
	// How long a node keeps a pressure condition. Default: 4m.
	// +optional
	// +kubebuilder:validation:Format=duration
	EvictionPressureTransitionPeriod *metav1.Duration `json:"evictionPressureTransitionPeriod,omitempty"`
	// Thresholds at which pods are evicted after a grace period. Default: memory 200Mi, file systems and inodes 10%.
	// +optional
	EvictionSoft *KubeletConfigEviction `json:"evictionSoft,omitempty"`
	// Grace periods of the soft thresholds. Default: 1m30s each.
	// +optional
	EvictionSoftGracePeriod *KubeletConfigEvictionSoftGracePeriod `json:"evictionSoftGracePeriod,omitempty"`
	// Greatest number of pods on a node. Default: 110.
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// Greatest number of processes in a pod.
	// +optional
	PodPIDsLimit *int64 `json:"podPidsLimit,omitempty"`
	// Whether the kubelet refuses to start on a node with swap. Default: true.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty"`
	// Resources kept for the kubelet, the container runtime and the system. A change replaces the nodes. Default: cpu 80m,
	// memory 1Gi, pid 20k.
	// +optional
	KubeReserved *KubeletConfigReserved `json:"kubeReserved,omitempty"`
	// Use of the disk, in percent, at which images are removed. Default: 50.
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// Use of the disk, in percent, down to which images are removed. Default: 40.
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// Whether images are pulled one at a time. Default: true, but false if `maxParallelImagePulls` is greater than 1.
	// +optional
	SerializeImagePulls *bool `json:"serializeImagePulls,omitempty"`
	// How many image pulls a second are begun; 0 means any number. Default: 5.
	// +optional
	RegistryPullQPS *int32 `json:"registryPullQPS,omitempty"`
	// How many image pulls may be begun in a burst. Default: 10.
	// +optional
	RegistryBurst *int32 `json:"registryBurst,omitempty"`
	// Whether pods without a seccomp profile get that of the container runtime. Needs a feature gate.
	// +optional
	SeccompDefault *bool `json:"seccompDefault,omitempty"`
	// Size at which log files of containers are rotated. Default: 100Mi.
	// +optional
	ContainerLogMaxSize *resource.Quantity `json:"containerLogMaxSize,omitempty"`
	// Number of log files kept for a container. Default: 5.
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty"`
	// Whether the kubelet insists on its own kernel settings. Default: true.
	// +optional
	ProtectKernelDefaults *bool `json:"protectKernelDefaults,omitempty"`
	// How long streams (exec, attach, port-forward) may be idle: 30s to 4h. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	StreamingConnectionIdleTimeout *metav1.Duration `json:"streamingConnectionIdleTimeout,omitempty"`
	// Swap for workloads. Needs `failSwapOn: false`.
	// +optional
	MemorySwap *MemorySwapConfiguration `json:"memorySwap,omitempty"`
	// How many images are pulled at a time. Unset: any number. Needs `serializeImagePulls: false`.
	// +optional
	MaxParallelImagePulls *int32 `json:"maxParallelImagePulls,omitempty"`
	// How long an unused image is kept at least. Default: 2m.
	// +optional
	// +kubebuilder:validation:Format=duration
	ImageMinimumGCAge *metav1.Duration `json:"imageMinimumGCAge,omitempty"`
	// How long an unused image is kept at most; 0s means for ever. Default: 0s.
	// +optional
	// +kubebuilder:validation:Format=duration
	ImageMaximumGCAge *metav1.Duration `json:"imageMaximumGCAge,omitempty"`
	// For which images that are on the node already the credentials of a pod are checked: `NeverVerify`,
	// `NeverVerifyPreloadedImages`, `NeverVerifyAllowlistedImages` or `AlwaysVerify`. Only from Kubernetes 1.35 on.
	// +optional
	ImagePullCredentialsVerificationPolicy *ImagePullCredentialsVerificationPolicy `json:"imagePullCredentialsVerificationPolicy,omitempty"`
	// Images, without tag or digest, `/*` at the end for all of a path, whose credentials are not checked. Only from
	// Kubernetes 1.35 on, and only with the policy `NeverVerifyAllowlistedImages`.
	// +optional
	// +listType=atomic
	PreloadedImagesVerificationAllowlist []string `json:"preloadedImagesVerificationAllowlist,omitempty"`
	// Whether a lack of memory ends single processes of a container instead of all of them.
	// +optional
	SingleProcessOOMKill *bool `json:"singleProcessOOMKill,omitempty"`
}

// ImagePullCredentialsVerificationPolicy says for which images on a node the credentials of a pod are checked.
// +kubebuilder:validation:Enum=NeverVerify;NeverVerifyPreloadedImages;NeverVerifyAllowlistedImages;AlwaysVerify
type ImagePullCredentialsVerificationPolicy string

// KubeletConfigEviction holds thresholds, each as a quantity or a percentage.
type KubeletConfigEviction struct {
	// Free memory.
	// +optional
	MemoryAvailable *string `json:"memoryAvailable,omitempty"`
	// Free space on the file system of images.
	// +optional
	ImageFSAvailable *string `json:"imageFSAvailable,omitempty"`
	// Free inodes on the file system of images.
	// +optional
	ImageFSInodesFree *string `json:"imageFSInodesFree,omitempty"`
	// Free space on the file system of the node.
	// +optional
	NodeFSAvailable *string `json:"nodeFSAvailable,omitempty"`
	// Free inodes on the file system of the node.
	// +optional
	NodeFSInodesFree *string `json:"nodeFSInodesFree,omitempty"`
}

// KubeletConfigEvictionMinimumReclaim holds amounts that are freed beyond thresholds.
type KubeletConfigEvictionMinimumReclaim struct {
	// Memory.
	// +optional
	MemoryAvailable *resource.Quantity `json:"memoryAvailable,omitempty"`
	// Space on the file system of images.
	// +optional
	ImageFSAvailable *resource.Quantity `json:"imageFSAvailable,omitempty"`
	// Inodes on the file system of images.
	// +optional
	ImageFSInodesFree *resource.Quantity `json:"imageFSInodesFree,omitempty"`
	// Space on the file system of the node.
	// +optional
	NodeFSAvailable *resource.Quantity `json:"nodeFSAvailable,omitempty"`
	// Inodes on the file system of the node.
	// +optional
	NodeFSInodesFree *resource.Quantity `json:"nodeFSInodesFree,omitempty"`
}

// KubeletConfigEvictionSoftGracePeriod holds grace periods of soft thresholds.
type KubeletConfigEvictionSoftGracePeriod struct {
	// Free memory.
	// +optional
	// +kubebuilder:validation:Format=duration
	MemoryAvailable *metav1.Duration `json:"memoryAvailable,omitempty"`
	// Free space on the file system of images.
	// +optional
	// +kubebuilder:validation:Format=duration
	ImageFSAvailable *metav1.Duration `json:"imageFSAvailable,omitempty"`
	// Free inodes on the file system of images.
	// +optional
	// +kubebuilder:validation:Format=duration
	ImageFSInodesFree *metav1.Duration `json:"imageFSInodesFree,omitempty"`
	// Free space on the file system of the node.
	// +optional
	// +kubebuilder:validation:Format=duration
	NodeFSAvailable *metav1.Duration `json:"nodeFSAvailable,omitempty"`
	// Free inodes on the file system of the node.
	// +optional
	// +kubebuilder:validation:Format=duration
	NodeFSInodesFree *metav1.Duration `json:"nodeFSInodesFree,omitempty"`
}

// KubeletConfigReserved holds resources that are kept.
type KubeletConfigReserved struct {
	// CPU.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Ephemeral storage.
	// +optional
	EphemeralStorage *resource.Quantity `json:"ephemeralStorage,omitempty"`
	// Process ids.
	// +optional
	PID *resource.Quantity `json:"pid,omitempty"`
}

// MemorySwapConfiguration holds settings of swap for workloads.
type MemorySwapConfiguration struct {
	// How workloads use swap: `NoSwap` or `LimitedSwap`. Default: `LimitedSwap` if `failSwapOn` is false.
	// +optional
	SwapBehavior *SwapBehavior `json:"swapBehavior,omitempty"`
}

// SwapBehavior is a way in which workloads use swap.
// +kubebuilder:validation:Enum=NoSwap;LimitedSwap
type SwapBehavior string

const (
	// NoSwap keeps workloads out of swap.
	NoSwap SwapBehavior = "NoSwap"
	// LimitedSwap lets workloads use swap in proportion to their memory requests.
	LimitedSwap SwapBehavior = "LimitedSwap"
)
