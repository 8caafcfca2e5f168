// SPDX-License-Identifier: Apache-2.0

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
	// CPU manager policy: `none` or `static`. A change replaces the nodes. Default: `none`.
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty"`
	// Thresholds for immediate eviction of pods. Default: memory 100Mi, file systems and inodes 5%.
	// +optional
	EvictionHard *KubeletConfigEviction `json:"evictionHard,omitempty"`
	// Seconds that pods get to terminate at a soft eviction. Default: 90.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// Amounts to reclaim beyond the thresholds. Default: 0Mi.
	// +optional
	EvictionMinimumReclaim *KubeletConfigEvictionMinimumReclaim `json:"evictionMinimumReclaim,omitempty"`
	// Time for which a node retains a pressure condition. Default: 4m.
	// +optional
	// +kubebuilder:validation:Format=duration
	EvictionPressureTransitionPeriod *metav1.Duration `json:"evictionPressureTransitionPeriod,omitempty"`
	// Thresholds for eviction of pods after a grace period. Default: memory 200Mi, file systems and
	// inodes 10%.
	// +optional
	EvictionSoft *KubeletConfigEviction `json:"evictionSoft,omitempty"`
	// Grace periods of the soft thresholds. Default: 1m30s each.
	// +optional
	EvictionSoftGracePeriod *KubeletConfigEvictionSoftGracePeriod `json:"evictionSoftGracePeriod,omitempty"`
	// Maximum number of pods on a node. Default: 110.
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// Maximum number of processes in a pod.
	// +optional
	PodPIDsLimit *int64 `json:"podPidsLimit,omitempty"`
	// Whether the kubelet refuses to start on a node with swap. Default: true.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty"`
	// Resources reserved for the kubelet, the container runtime and the system. A change replaces
	// the nodes. Default: cpu 80m, memory 1Gi, pid 20k.
	// +optional
	KubeReserved *KubeletConfigReserved `json:"kubeReserved,omitempty"`
	// Disk usage, in percent, at which image garbage collection starts. Default: 50.
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// Disk usage, in percent, at which image garbage collection stops. Default: 40.
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// Whether images are pulled one at a time. Default: true, or false if `maxParallelImagePulls`
	// is greater than 1.
	// +optional
	SerializeImagePulls *bool `json:"serializeImagePulls,omitempty"`
	// Maximum number of image pulls started per second; 0 means no limit. Default: 5.
	// +optional
	RegistryPullQPS *int32 `json:"registryPullQPS,omitempty"`
	// Maximum number of image pulls started in a burst. Default: 10.
	// +optional
	RegistryBurst *int32 `json:"registryBurst,omitempty"`
	// Whether pods without a seccomp profile get the container runtime's. Requires a feature gate.
	// +optional
	SeccompDefault *bool `json:"seccompDefault,omitempty"`
	// Size at which log files of containers are rotated. Default: 100Mi.
	// +optional
	ContainerLogMaxSize *resource.Quantity `json:"containerLogMaxSize,omitempty"`
	// Maximum number of log files per container. Default: 5.
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty"`
	// Whether the kubelet requires its own kernel settings. Default: true.
	// +optional
	ProtectKernelDefaults *bool `json:"protectKernelDefaults,omitempty"`
	// Time that streams (exec, attach, port-forward) may be idle: 30s to 4h. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	StreamingConnectionIdleTimeout *metav1.Duration `json:"streamingConnectionIdleTimeout,omitempty"`
	// Swap for workloads. Requires `failSwapOn: false`.
	// +optional
	MemorySwap *MemorySwapConfiguration `json:"memorySwap,omitempty"`
	// Maximum number of parallel image pulls. Unset: no limit. Requires `serializeImagePulls:
	// false`.
	// +optional
	MaxParallelImagePulls *int32 `json:"maxParallelImagePulls,omitempty"`
	// Minimum age of an unused image before it is removed. Default: 2m.
	// +optional
	// +kubebuilder:validation:Format=duration
	ImageMinimumGCAge *metav1.Duration `json:"imageMinimumGCAge,omitempty"`
	// Maximum age of an unused image; 0s means no limit. Default: 0s.
	// +optional
	// +kubebuilder:validation:Format=duration
	ImageMaximumGCAge *metav1.Duration `json:"imageMaximumGCAge,omitempty"`
	// Images on the node for which the credentials of a pod are verified: `NeverVerify`,
	// `NeverVerifyPreloadedImages`, `NeverVerifyAllowlistedImages` or `AlwaysVerify`. Only from
	// Kubernetes 1.35 on.
	// +optional
	ImagePullCredentialsVerificationPolicy *ImagePullCredentialsVerificationPolicy `json:"imagePullCredentialsVerificationPolicy,omitempty"`
	// Images whose credentials are not verified, without tag or digest; `/*` at the end matches a
	// path. Only from Kubernetes 1.35 on, and only with the policy `NeverVerifyAllowlistedImages`.
	// +optional
	// +listType=atomic
	PreloadedImagesVerificationAllowlist []string `json:"preloadedImagesVerificationAllowlist,omitempty"`
	// Whether a lack of memory ends single processes of a container instead of all of them.
	// +optional
	SingleProcessOOMKill *bool `json:"singleProcessOOMKill,omitempty"`
}

// ImagePullCredentialsVerificationPolicy selects the images on a node for which the credentials of
// a pod are verified.
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

// KubeletConfigEvictionMinimumReclaim holds amounts to reclaim beyond the thresholds.
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

// KubeletConfigReserved holds reserved resources.
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
	// Use of swap by workloads: `NoSwap` or `LimitedSwap`. Default: `LimitedSwap` if `failSwapOn`
	// is false.
	// +optional
	SwapBehavior *SwapBehavior `json:"swapBehavior,omitempty"`
}

// SwapBehavior is a way for workloads to use swap.
// +kubebuilder:validation:Enum=NoSwap;LimitedSwap
type SwapBehavior string

const (
	// NoSwap prevents workloads from using swap.
	NoSwap SwapBehavior = "NoSwap"
	// LimitedSwap lets workloads use swap in proportion to their memory requests.
	LimitedSwap SwapBehavior = "LimitedSwap"
)
