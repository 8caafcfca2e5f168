package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAutoscaler holds settings of the cluster autoscaler.
type ClusterAutoscaler struct {
	// How long no node is removed after one was added. Default: 1h.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownDelayAfterAdd *metav1.Duration `json:"scaleDownDelayAfterAdd,omitempty"`
	// How long no node is removed after one was removed. Default: 0s.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownDelayAfterDelete *metav1.Duration `json:"scaleDownDelayAfterDelete,omitempty"`
	// How long no node is removed after a removal failed. Default: 3m.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownDelayAfterFailure *metav1.Duration `json:"scaleDownDelayAfterFailure,omitempty"`
	// How long a node has to be unneeded before it is removed. Default: 30m.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// Share of a node's requests, from 0.0 to 1.0, below which it may be removed. Default: 0.5.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// Interval at which scaling is considered. Default: 10s.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScanInterval *metav1.Duration `json:"scanInterval,omitempty"`
	// How the pool that grows is chosen: `least-waste`, `most-pods`, `priority` or `random`, or several of them joined by
	// commas. Default: `least-waste`.
	// +optional
	Expander *ExpanderMode `json:"expander,omitempty"`
	// How long a new node may take to become ready. Default: 20m.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
	// How long pods get to end when their node is removed, in seconds. Default: 600.
	// +optional
	MaxGracefulTerminationSeconds *int32 `json:"maxGracefulTerminationSeconds,omitempty"`
	// Keys of taints that are ignored in node templates. Deprecated: use `startupTaints`.
	// +optional
	// +listType=atomic
	IgnoreTaints []string `json:"ignoreTaints,omitempty"`
	// How long new pods are ignored. Default: 0s.
	// +optional
	// +kubebuilder:validation:Format=duration
	NewPodScaleUpDelay *metav1.Duration `json:"newPodScaleUpDelay,omitempty"`
	// How many empty nodes are removed at once. Forbidden from Kubernetes 1.33 on. Deprecated: use
	// `maxScaleDownParallelism`.
	// +optional
	MaxEmptyBulkDelete *int32 `json:"maxEmptyBulkDelete,omitempty"`
	// Whether pods of DaemonSets are left out of a node's load. Default: false.
	// +optional
	IgnoreDaemonsetsUtilization *bool `json:"ignoreDaemonsetsUtilization,omitempty"`
	// Log level. Default: 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`
	// Keys of taints that nodes lose once they have started. Such nodes count as starting.
	// +optional
	// +listType=atomic
	StartupTaints []string `json:"startupTaints,omitempty"`
	// Keys of taints that nodes get for a time. Such nodes count as ready, but not for scaling up.
	// +optional
	// +listType=atomic
	StatusTaints []string `json:"statusTaints,omitempty"`
	// How many nodes are removed at once. Default: 10.
	// +optional
	MaxScaleDownParallelism *int32 `json:"maxScaleDownParallelism,omitempty"`
	// How many nodes with pods are removed at once. Default: 1.
	// +optional
	MaxDrainParallelism *int32 `json:"maxDrainParallelism,omitempty"`
	// How long a pool is left alone after the first failure to grow. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	InitialNodeGroupBackoffDuration *metav1.Duration `json:"initialNodeGroupBackoffDuration,omitempty"`
	// How long a pool is left alone at most after failures to grow. Default: 30m.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeGroupBackoffDuration *metav1.Duration `json:"maxNodeGroupBackoffDuration,omitempty"`
	// How long after the last failure a pool counts as new again. Default: 3h.
	// +optional
	// +kubebuilder:validation:Format=duration
	NodeGroupBackoffResetTimeout *metav1.Duration `json:"nodeGroupBackoffResetTimeout,omitempty"`
	// Whether metrics tell pools apart. Default: false.
	// +optional
	EmitPerNodeGroupMetrics *bool `json:"emitPerNodeGroupMetrics,omitempty"`
	// How long one scale-up may compute which pods fit where; after that it goes on with what it has. Default: 5m, by
	// the cluster autoscaler.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxBinpackingTime *metav1.Duration `json:"maxBinpackingTime,omitempty"`
	// Limits of the automatic scaling of the cluster autoscaler itself.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
}

// ExpanderMode is a way of choosing the pool that grows.
type ExpanderMode string

const (
	// ClusterAutoscalerExpanderLeastWaste chooses the pool with least idle CPU afterwards.
	ClusterAutoscalerExpanderLeastWaste ExpanderMode = "least-waste"
	// ClusterAutoscalerExpanderMostPods chooses the pool that takes most pods.
	ClusterAutoscalerExpanderMostPods ExpanderMode = "most-pods"
	// ClusterAutoscalerExpanderPriority chooses by priority of the pools.
	ClusterAutoscalerExpanderPriority ExpanderMode = "priority"
	// ClusterAutoscalerExpanderRandom chooses at random.
	ClusterAutoscalerExpanderRandom ExpanderMode = "random"
)

// VerticalPodAutoscaler holds settings of the vertical pod autoscaler.
type VerticalPodAutoscaler struct {
	// Whether the autoscaler runs. Default: false; landscapes commonly default it to true for clusters with workers.
	Enabled bool `json:"enabled"`
	// How soon after its start a container has to run out of memory for its pod to be evicted. Default: 10m.
	// +optional
	// +kubebuilder:validation:Format=duration
	EvictAfterOOMThreshold *metav1.Duration `json:"evictAfterOOMThreshold,omitempty"`
	// How many pods may be evicted in a burst. Default: 1.
	// +optional
	EvictionRateBurst *int32 `json:"evictionRateBurst,omitempty"`
	// How many pods may be evicted per second; 0 and -1 mean any number. Default: -1.
	// +optional
	EvictionRateLimit *float64 `json:"evictionRateLimit,omitempty"`
	// Share of the replicas that may be evicted at once. Default: 0.5.
	// +optional
	EvictionTolerance *float64 `json:"evictionTolerance,omitempty"`
	// Share of the usage that is added as a safety margin. Default: 0.15.
	// +optional
	RecommendationMarginFraction *float64 `json:"recommendationMarginFraction,omitempty"`
	// Interval of the updater. Default: 1m.
	// +optional
	// +kubebuilder:validation:Format=duration
	UpdaterInterval *metav1.Duration `json:"updaterInterval,omitempty"`
	// Interval of the recommender. Default: 1m.
	// +optional
	// +kubebuilder:validation:Format=duration
	RecommenderInterval *metav1.Duration `json:"recommenderInterval,omitempty"`
	// Percentile of CPU usage for the target, as a fraction. Default: 0.9.
	// +optional
	TargetCPUPercentile *float64 `json:"targetCPUPercentile,omitempty"`
	// Percentile of CPU usage for the lower bound. Default: 0.5.
	// +optional
	RecommendationLowerBoundCPUPercentile *float64 `json:"recommendationLowerBoundCPUPercentile,omitempty"`
	// Percentile of CPU usage for the upper bound. Default: 0.95.
	// +optional
	RecommendationUpperBoundCPUPercentile *float64 `json:"recommendationUpperBoundCPUPercentile,omitempty"`
	// Percentile of memory usage for the target, as a fraction. Default: 0.9.
	// +optional
	TargetMemoryPercentile *float64 `json:"targetMemoryPercentile,omitempty"`
	// Percentile of memory usage for the lower bound. Default: 0.5.
	// +optional
	RecommendationLowerBoundMemoryPercentile *float64 `json:"recommendationLowerBoundMemoryPercentile,omitempty"`
	// Percentile of memory usage for the upper bound. Default: 0.95.
	// +optional
	RecommendationUpperBoundMemoryPercentile *float64 `json:"recommendationUpperBoundMemoryPercentile,omitempty"`
	// Time in which a sample of CPU usage loses half its weight. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	CPUHistogramDecayHalfLife *metav1.Duration `json:"cpuHistogramDecayHalfLife,omitempty"`
	// Time in which a sample of memory usage loses half its weight. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	MemoryHistogramDecayHalfLife *metav1.Duration `json:"memoryHistogramDecayHalfLife,omitempty"`
	// Length of the intervals for which peaks of memory usage are kept. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	MemoryAggregationInterval *metav1.Duration `json:"memoryAggregationInterval,omitempty"`
	// Number of such intervals that are kept. Default: 8.
	// +optional
	MemoryAggregationIntervalCount *int64 `json:"memoryAggregationIntervalCount,omitempty"`
	// Feature gates of the autoscaler.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// How many workers of the recommender write recommendations in parallel. Default: 10.
	// +optional
	RecommenderUpdateWorkerCount *int64 `json:"recommenderUpdateWorkerCount,omitempty"`
	// Greatest recommendation (`cpu`, `memory`) for a container. Unset: no limit.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}
