// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes holds version and settings of the Kubernetes components.
type Kubernetes struct {
	// Settings of the cluster autoscaler, which runs if a pool can grow.
	// +optional
	ClusterAutoscaler *ClusterAutoscaler `json:"clusterAutoscaler,omitempty"`
	// Settings of kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty"`
	// Settings of kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty"`
	// Settings of kube-scheduler.
	// +optional
	KubeScheduler *KubeSchedulerConfig `json:"kubeScheduler,omitempty"`
	// Settings of kube-proxy.
	// +optional
	KubeProxy *KubeProxyConfig `json:"kubeProxy,omitempty"`
	// Settings of the kubelet, for pools without their own.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Kubernetes version, for example `1.34.1`. `1.34` or `1` selects the newest matching version
	// of the CloudProfile. It can be raised by patch versions and by one minor version at a time,
	// never lowered. Default: the newest of the profile.
	// +optional
	Version string `json:"version,omitempty"`
	// Vertical pod autoscaler for workloads of the cluster.
	// +optional
	VerticalPodAutoscaler *VerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// Settings of the control plane's etcds.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty"`
}

// KubernetesConfig holds settings that all Kubernetes components share.
type KubernetesConfig struct {
	// Feature gates of the component.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// ETCD holds settings of the etcds.
type ETCD struct {
	// etcd for all resources except events.
	// +optional
	Main *ETCDConfig `json:"main,omitempty"`
	// etcd for events.
	// +optional
	Events *ETCDConfig `json:"events,omitempty"`
}

// ETCDConfig holds settings of one etcd.
type ETCDConfig struct {
	// Limits of automatic scaling. Minimum memory: 300M for main, 60M for events.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
}

// ControlPlaneAutoscaling holds limits of automatic scaling.
type ControlPlaneAutoscaling struct {
	// Minimum requests (`cpu`, `memory`) that the vertical pod autoscaler sets. No default.
	MinAllowed corev1.ResourceList `json:"minAllowed"`
}

// KubeControllerManagerConfig holds settings of kube-controller-manager.
type KubeControllerManagerConfig struct {
	KubernetesConfig `json:",inline"`
	// Horizontal pod autoscaler.
	// +optional
	HorizontalPodAutoscalerConfig *HorizontalPodAutoscalerConfig `json:"horizontalPodAutoscaler,omitempty"`
	// Prefix length of each node's IPv4 pod network, 16 to 28; with IPv6 only, 64 to 124.
	// Immutable. Default: room for twice the maximum number of pods per node; 64 for IPv6.
	// +optional
	NodeCIDRMaskSize *int32 `json:"nodeCIDRMaskSize,omitempty"`
	// Time for which pods stay on failed nodes. Forbidden from Kubernetes 1.33 on. Deprecated: use
	// the tolerations of kube-apiserver.
	// +optional
	// +kubebuilder:validation:Format=duration
	PodEvictionTimeout *metav1.Duration `json:"podEvictionTimeout,omitempty"`
	// Time without reports after which a node counts as unhealthy. Default: 40s.
	// +optional
	// +kubebuilder:validation:Format=duration
	NodeMonitorGracePeriod *metav1.Duration `json:"nodeMonitorGracePeriod,omitempty"`
	// Prefix length of each node's IPv6 pod network, 64 to 124. Immutable. Default: 64.
	// +optional
	NodeCIDRMaskSizeIPv6 *int32 `json:"nodeCIDRMaskSizeIPv6,omitempty"`
}

// HorizontalPodAutoscalerConfig holds settings of the horizontal pod autoscaler.
type HorizontalPodAutoscalerConfig struct {
	// Time after the start of a pod in which its CPU usage may be ignored. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	CPUInitializationPeriod *metav1.Duration `json:"cpuInitializationPeriod,omitempty"`
	// Time window of the recommendations considered before scaling down; the highest one is used.
	// Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	DownscaleStabilization *metav1.Duration `json:"downscaleStabilization,omitempty"`
	// Time after the start of a pod in which readiness changes count as part of the start. Default:
	// 30s.
	// +optional
	// +kubebuilder:validation:Format=duration
	InitialReadinessDelay *metav1.Duration `json:"initialReadinessDelay,omitempty"`
	// Interval of scaling. Default: 30s.
	// +optional
	// +kubebuilder:validation:Format=duration
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// Minimum deviation from the target, as a fraction, that triggers scaling. Default: 0.1.
	// +optional
	Tolerance *float64 `json:"tolerance,omitempty"`
}

// KubeSchedulerConfig holds settings of kube-scheduler.
type KubeSchedulerConfig struct {
	KubernetesConfig `json:",inline"`
	// Maximum number of volumes per node. Forbidden from Kubernetes 1.35 on. Deprecated.
	// +optional
	KubeMaxPDVols *string `json:"kubeMaxPDVols,omitempty"`
	// Strategy for choosing nodes: `balanced` (spread the load) or `bin-packing` (fill nodes up).
	// Default: `balanced`.
	// +optional
	Profile *SchedulingProfile `json:"profile,omitempty"`
}

// SchedulingProfile is a strategy for choosing nodes.
// +kubebuilder:validation:Enum=balanced;bin-packing
type SchedulingProfile string

const (
	// SchedulingProfileBalanced spreads the load.
	SchedulingProfileBalanced SchedulingProfile = "balanced"
	// SchedulingProfileBinPacking fills nodes up.
	SchedulingProfileBinPacking SchedulingProfile = "bin-packing"
)

// KubeProxyConfig holds settings of kube-proxy.
type KubeProxyConfig struct {
	KubernetesConfig `json:",inline"`
	// Implementation of Services: `IPTables`, `IPVS` or `NFTables`. Default: `IPTables`.
	// +optional
	// +kubebuilder:default=IPTables
	Mode *ProxyMode `json:"mode,omitempty"`
	// Whether kube-proxy is installed. Some network plugins replace it. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// ProxyMode is an implementation of Services.
// +kubebuilder:validation:Enum=IPTables;IPVS;NFTables
type ProxyMode string

const (
	// ProxyModeIPTables uses iptables.
	ProxyModeIPTables ProxyMode = "IPTables"
	// ProxyModeIPVS uses IP virtual servers.
	ProxyModeIPVS ProxyMode = "IPVS"
	// ProxyModeNFTables uses nftables.
	ProxyModeNFTables ProxyMode = "NFTables"
)
