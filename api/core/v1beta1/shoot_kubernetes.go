package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes holds version and settings of the Kubernetes components.
type Kubernetes struct {
	// Cluster autoscaler. It runs if some pool may grow.
	// +optional
	ClusterAutoscaler *ClusterAutoscaler `json:"clusterAutoscaler,omitempty"`
	// kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty"`
	// kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty"`
	// kube-scheduler.
	// +optional
	KubeScheduler *KubeSchedulerConfig `json:"kubeScheduler,omitempty"`
	// kube-proxy.
	// +optional
	KubeProxy *KubeProxyConfig `json:"kubeProxy,omitempty"`
	// kubelet, for pools that do not bring their own settings.
	// +optional
	Kubelet *KubeletConfig `json:"kubelet,omitempty"`
	// Kubernetes version, `1.34.1`, or shortened to `1.34` or `1` for the newest one of the CloudProfile that fits. May
	// be raised by patch versions and by one minor version at a time; never lowered. Default: the newest of the profile.
	// +optional
	Version string `json:"version,omitempty"`
	// Vertical pod autoscaler for workloads of the cluster.
	// +optional
	VerticalPodAutoscaler *VerticalPodAutoscaler `json:"verticalPodAutoscaler,omitempty"`
	// etcd of the control plane.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty"`
}

// KubernetesConfig is what settings of all Kubernetes components share.
type KubernetesConfig struct {
	// Feature gates of the component.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// ETCD holds settings of the etcds.
type ETCD struct {
	// etcd for everything but events.
	// +optional
	Main *ETCDConfig `json:"main,omitempty"`
	// etcd for events.
	// +optional
	Events *ETCDConfig `json:"events,omitempty"`
}

// ETCDConfig holds settings of one etcd.
type ETCDConfig struct {
	// Limits of automatic scaling. Least memory: 300M for main, 60M for events.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
}

// ControlPlaneAutoscaling holds limits of automatic scaling.
type ControlPlaneAutoscaling struct {
	// Least requests (`cpu`, `memory`) that the vertical pod autoscaler sets. Not defaulted.
	MinAllowed corev1.ResourceList `json:"minAllowed"`
}

// KubeControllerManagerConfig holds settings of kube-controller-manager.
type KubeControllerManagerConfig struct {
	KubernetesConfig `json:",inline"`
	// Horizontal pod autoscaler.
	// +optional
	HorizontalPodAutoscalerConfig *HorizontalPodAutoscalerConfig `json:"horizontalPodAutoscaler,omitempty"`
	// Prefix length of each node's IPv4 pod network, 16 to 28; with IPv6 only, 64 to 124. Immutable. Default: room for
	// twice the greatest number of pods per node, at most 24; 64 for IPv6.
	// +optional
	NodeCIDRMaskSize *int32 `json:"nodeCIDRMaskSize,omitempty"`
	// How long pods stay on failed nodes. Forbidden from Kubernetes 1.33 on. Deprecated: use the tolerations of
	// kube-apiserver.
	// +optional
	// +kubebuilder:validation:Format=duration
	PodEvictionTimeout *metav1.Duration `json:"podEvictionTimeout,omitempty"`
	// How long a node may be silent before it counts as unhealthy. Default: 40s.
	// +optional
	// +kubebuilder:validation:Format=duration
	NodeMonitorGracePeriod *metav1.Duration `json:"nodeMonitorGracePeriod,omitempty"`
	// Prefix length of each node's IPv6 pod network, 64 to 124. Immutable. Default: 64.
	// +optional
	NodeCIDRMaskSizeIPv6 *int32 `json:"nodeCIDRMaskSizeIPv6,omitempty"`
}

// HorizontalPodAutoscalerConfig holds settings of the horizontal pod autoscaler.
type HorizontalPodAutoscalerConfig struct {
	// How long after its start the CPU usage of a pod may be ignored. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	CPUInitializationPeriod *metav1.Duration `json:"cpuInitializationPeriod,omitempty"`
	// How far back recommendations are looked at before scaling down; the greatest wins. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	DownscaleStabilization *metav1.Duration `json:"downscaleStabilization,omitempty"`
	// How long after its start changes of readiness count as part of the start. Default: 30s.
	// +optional
	// +kubebuilder:validation:Format=duration
	InitialReadinessDelay *metav1.Duration `json:"initialReadinessDelay,omitempty"`
	// Interval of scaling. Default: 30s.
	// +optional
	// +kubebuilder:validation:Format=duration
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// Least deviation from the target, as a fraction, that leads to scaling. Default: 0.1.
	// +optional
	Tolerance *float64 `json:"tolerance,omitempty"`
}

// KubeSchedulerConfig holds settings of kube-scheduler.
type KubeSchedulerConfig struct {
	KubernetesConfig `json:",inline"`
	// Greatest number of volumes per node. Forbidden from Kubernetes 1.35 on. Deprecated.
	// +optional
	KubeMaxPDVols *string `json:"kubeMaxPDVols,omitempty"`
	// How nodes are chosen: `balanced` (spread the load) or `bin-packing` (fill nodes up). Default: `balanced`.
	// +optional
	Profile *SchedulingProfile `json:"profile,omitempty"`
}

// SchedulingProfile is a way of choosing nodes.
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
	// How Services are implemented: `IPTables`, `IPVS` or `NFTables`. Default: `IPTables`.
	// +optional
	// +kubebuilder:default=IPTables
	Mode *ProxyMode `json:"mode,omitempty"`
	// Whether kube-proxy is installed. Some network plugins replace it. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// ProxyMode is a way of implementing Services.
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
