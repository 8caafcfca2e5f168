// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAutoscaler holds settings of the cluster autoscaler.
type ClusterAutoscaler struct {
	// Time after the addition of a node during which no node is removed. Default: 1h.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownDelayAfterAdd *metav1.Duration `json:"scaleDownDelayAfterAdd,omitempty"`
	// Time after the removal of a node during which no node is removed. Default: 0s.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownDelayAfterDelete *metav1.Duration `json:"scaleDownDelayAfterDelete,omitempty"`
	// Time after a failed removal during which no node is removed. Default: 3m.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownDelayAfterFailure *metav1.Duration `json:"scaleDownDelayAfterFailure,omitempty"`
	// Time for which a node must be unneeded before it is removed. Default: 30m.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// Share of a node's requests, from 0.0 to 1.0, below which the node may be removed. Default:
	// 0.5.
	// +optional
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// Interval at which scaling is evaluated. Default: 10s.
	// +optional
	// +kubebuilder:validation:Format=duration
	ScanInterval *metav1.Duration `json:"scanInterval,omitempty"`
	// Strategy for choosing the pool to scale up: `least-waste`, `most-pods`, `priority` or
	// `random`, or several of them joined by commas. Default: `least-waste`.
	// +optional
	Expander *ExpanderMode `json:"expander,omitempty"`
	// Timeout for a new node to become ready. Default: 20m.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeProvisionTime *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
	// Seconds that pods get to terminate when their node is removed. Default: 600.
	// +optional
	MaxGracefulTerminationSeconds *int32 `json:"maxGracefulTerminationSeconds,omitempty"`
	// Keys of taints that are ignored in node templates. Deprecated: use `startupTaints`.
	// +optional
	// +listType=atomic
	IgnoreTaints []string `json:"ignoreTaints,omitempty"`
	// Time for which new pods are ignored. Default: 0s.
	// +optional
	// +kubebuilder:validation:Format=duration
	NewPodScaleUpDelay *metav1.Duration `json:"newPodScaleUpDelay,omitempty"`
	// Maximum number of empty nodes removed at once. Forbidden from Kubernetes 1.33 on. Deprecated:
	// use `maxScaleDownParallelism`.
	// +optional
	MaxEmptyBulkDelete *int32 `json:"maxEmptyBulkDelete,omitempty"`
	// Whether pods of DaemonSets are excluded from a node's utilization. Default: false.
	// +optional
	IgnoreDaemonsetsUtilization *bool `json:"ignoreDaemonsetsUtilization,omitempty"`
	// Log level. Default: 2.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty"`
	// Keys of taints that nodes lose after startup. Such nodes count as starting.
	// +optional
	// +listType=atomic
	StartupTaints []string `json:"startupTaints,omitempty"`
	// Keys of temporary taints of nodes. Such nodes count as ready, but not for scaling up.
	// +optional
	// +listType=atomic
	StatusTaints []string `json:"statusTaints,omitempty"`
	// Maximum number of nodes removed at once. Default: 10.
	// +optional
	MaxScaleDownParallelism *int32 `json:"maxScaleDownParallelism,omitempty"`
	// Maximum number of nodes with pods removed at once. Default: 1.
	// +optional
	MaxDrainParallelism *int32 `json:"maxDrainParallelism,omitempty"`
	// Backoff of a pool after its first failed scale-up. Default: 5m.
	// +optional
	// +kubebuilder:validation:Format=duration
	InitialNodeGroupBackoffDuration *metav1.Duration `json:"initialNodeGroupBackoffDuration,omitempty"`
	// Maximum backoff of a pool after failed scale-ups. Default: 30m.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxNodeGroupBackoffDuration *metav1.Duration `json:"maxNodeGroupBackoffDuration,omitempty"`
	// Time after the last failure at which the backoff of a pool is reset. Default: 3h.
	// +optional
	// +kubebuilder:validation:Format=duration
	NodeGroupBackoffResetTimeout *metav1.Duration `json:"nodeGroupBackoffResetTimeout,omitempty"`
	// Whether metrics are reported per pool. Default: false.
	// +optional
	EmitPerNodeGroupMetrics *bool `json:"emitPerNodeGroupMetrics,omitempty"`
	// Maximum time that one scale-up spends on computing which pods fit where; it then uses the
	// result so far. Default: 5m, by the cluster autoscaler.
	// +optional
	// +kubebuilder:validation:Format=duration
	MaxBinpackingTime *metav1.Duration `json:"maxBinpackingTime,omitempty"`
	// Limits of the automatic scaling of the cluster autoscaler itself.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty"`
}

// ExpanderMode is a strategy for choosing the pool to scale up.
type ExpanderMode string

const (
	// ClusterAutoscalerExpanderLeastWaste chooses the pool with the least idle CPU afterwards.
	ClusterAutoscalerExpanderLeastWaste ExpanderMode = "least-waste"
	// ClusterAutoscalerExpanderMostPods chooses the pool that fits the most pods.
	ClusterAutoscalerExpanderMostPods ExpanderMode = "most-pods"
	// ClusterAutoscalerExpanderPriority chooses by priority of the pools.
	ClusterAutoscalerExpanderPriority ExpanderMode = "priority"
	// ClusterAutoscalerExpanderRandom chooses at random.
	ClusterAutoscalerExpanderRandom ExpanderMode = "random"
)

// VerticalPodAutoscaler holds settings of the vertical pod autoscaler.
type VerticalPodAutoscaler struct {
	// Whether the autoscaler runs. Default: false; landscapes commonly default it to true for
	// clusters with workers.
	Enabled bool `json:"enabled"`
	// Time after the start of a container within which running out of memory evicts its pod.
	// Default: 10m.
	// +optional
	// +kubebuilder:validation:Format=duration
	EvictAfterOOMThreshold *metav1.Duration `json:"evictAfterOOMThreshold,omitempty"`
	// Maximum number of pods evicted in a burst. Default: 1.
	// +optional
	EvictionRateBurst *int32 `json:"evictionRateBurst,omitempty"`
	// Maximum number of pods evicted per second; 0 and -1 mean no limit. Default: -1.
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
	// Half-life of samples of CPU usage. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	CPUHistogramDecayHalfLife *metav1.Duration `json:"cpuHistogramDecayHalfLife,omitempty"`
	// Half-life of samples of memory usage. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	MemoryHistogramDecayHalfLife *metav1.Duration `json:"memoryHistogramDecayHalfLife,omitempty"`
	// Length of the intervals for which peaks of memory usage are recorded. Default: 24h.
	// +optional
	// +kubebuilder:validation:Format=duration
	MemoryAggregationInterval *metav1.Duration `json:"memoryAggregationInterval,omitempty"`
	// Number of recorded intervals of memory usage. Default: 8.
	// +optional
	MemoryAggregationIntervalCount *int64 `json:"memoryAggregationIntervalCount,omitempty"`
	// Feature gates of the autoscaler.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Number of recommender workers that write recommendations in parallel. Default: 10.
	// +optional
	RecommenderUpdateWorkerCount *int64 `json:"recommenderUpdateWorkerCount,omitempty"`
	// Maximum recommendation (`cpu`, `memory`) for a container. Unset: no limit.
	// +optional
	MaxAllowed corev1.ResourceList `json:"maxAllowed,omitempty"`
}
