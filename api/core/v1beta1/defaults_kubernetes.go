// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"
)

// featureGateNodeSwap allows workloads to use swap.
const featureGateNodeSwap = "NodeSwap"

// SetDefaults_KubeAPIServerConfig sets the defaults of a kube-apiserver, for Shoots and Gardens
// alike.
func SetDefaults_KubeAPIServerConfig(config *KubeAPIServerConfig) {
	requests := ensureBlock(&config.Requests)
	setDefault(&requests.MaxNonMutatingInflight, 400)
	setDefault(&requests.MaxMutatingInflight, 200)
	setDefaultDuration(&config.EventTTL, time.Hour)
	setDefault(&ensureBlock(&config.Logging).Verbosity, 2)
	setDefault(&ensureBlock(&config.EncryptionConfig).Provider.Type, EncryptionProviderTypeAESCBC)
}

// setShootKubeletDefaults sets the defaults of a Shoot's kubelet settings. Settings of a pool
// replace them and get only the defaults for swap.
func setShootKubeletDefaults(config *KubeletConfig) {
	setSwapDefaults(config)
	setDefaultDuration(&config.ImageMinimumGCAge, 2*time.Minute)
	setDefaultDuration(&config.ImageMaximumGCAge, 0)
	setDefault(&config.ImageGCHighThresholdPercent, 50)
	setDefault(&config.ImageGCLowThresholdPercent, 40)
	parallel := config.MaxParallelImagePulls != nil && *config.MaxParallelImagePulls > 1
	setDefault(&config.SerializeImagePulls, !parallel)
}

func setSwapDefaults(config *KubeletConfig) {
	setDefault(&config.FailSwapOn, true)
	if config.FeatureGates[featureGateNodeSwap] && !*config.FailSwapOn {
		setDefault(&ensureBlock(&config.MemorySwap).SwapBehavior, LimitedSwap)
	}
}

func setClusterAutoscalerDefaults(config *ClusterAutoscaler) {
	setDefaultDuration(&config.ScaleDownDelayAfterAdd, time.Hour)
	setDefaultDuration(&config.ScaleDownDelayAfterDelete, 0)
	setDefaultDuration(&config.ScaleDownDelayAfterFailure, 3*time.Minute)
	setDefaultDuration(&config.ScaleDownUnneededTime, 30*time.Minute)
	setDefault(&config.ScaleDownUtilizationThreshold, 0.5)
	setDefaultDuration(&config.ScanInterval, 10*time.Second)
	setDefault(&config.Expander, ClusterAutoscalerExpanderLeastWaste)
	setDefaultDuration(&config.MaxNodeProvisionTime, 20*time.Minute)
	setDefault(&config.MaxGracefulTerminationSeconds, 600)
	setDefault(&config.IgnoreDaemonsetsUtilization, false)
	setDefault(&config.EmitPerNodeGroupMetrics, false)
	setDefault(&config.Verbosity, 2)
	setDefaultDuration(&config.NewPodScaleUpDelay, 0)
	if config.MaxEmptyBulkDelete != nil {
		setDefault(&config.MaxScaleDownParallelism, *config.MaxEmptyBulkDelete)
	}
	setDefault(&config.MaxScaleDownParallelism, 10)
	setDefault(&config.MaxDrainParallelism, 1)
	setDefaultDuration(&config.InitialNodeGroupBackoffDuration, 5*time.Minute)
	setDefaultDuration(&config.MaxNodeGroupBackoffDuration, 30*time.Minute)
	setDefaultDuration(&config.NodeGroupBackoffResetTimeout, 3*time.Hour)
}

func setVerticalPodAutoscalerDefaults(config *VerticalPodAutoscaler) {
	setDefaultDuration(&config.EvictAfterOOMThreshold, 10*time.Minute)
	setDefault(&config.EvictionRateBurst, 1)
	setDefault(&config.EvictionRateLimit, -1)
	setDefault(&config.EvictionTolerance, 0.5)
	setDefault(&config.RecommendationMarginFraction, 0.15)
	setDefaultDuration(&config.UpdaterInterval, time.Minute)
	setDefaultDuration(&config.RecommenderInterval, time.Minute)
	setDefault(&config.TargetCPUPercentile, 0.9)
	setDefault(&config.RecommendationLowerBoundCPUPercentile, 0.5)
	setDefault(&config.RecommendationUpperBoundCPUPercentile, 0.95)
	setDefault(&config.TargetMemoryPercentile, 0.9)
	setDefault(&config.RecommendationLowerBoundMemoryPercentile, 0.5)
	setDefault(&config.RecommendationUpperBoundMemoryPercentile, 0.95)
	setDefaultDuration(&config.CPUHistogramDecayHalfLife, 24*time.Hour)
	setDefaultDuration(&config.MemoryHistogramDecayHalfLife, 24*time.Hour)
	setDefaultDuration(&config.MemoryAggregationInterval, 24*time.Hour)
	setDefault(&config.MemoryAggregationIntervalCount, 8)
	setDefault(&config.RecommenderUpdateWorkerCount, 10)
}
