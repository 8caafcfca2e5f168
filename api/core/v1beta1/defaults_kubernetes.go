package v1beta1

import (
	"time"
)

// featureGateNodeSwap allows workloads to use swap.
const featureGateNodeSwap = "NodeSwap"

// SetDefaults_KubeAPIServerConfig sets the defaults of a kube-apiserver, for Shoots and Gardens
// alike.
func SetDefaults_KubeAPIServerConfig(config *KubeAPIServerConfig) {
	requests := orEmpty(&config.Requests)
	orDefault(&requests.MaxNonMutatingInflight, 400)
	orDefault(&requests.MaxMutatingInflight, 200)
	orDuration(&config.EventTTL, time.Hour)
	orDefault(&orEmpty(&config.Logging).Verbosity, 2)
	orDefault(&orEmpty(&config.EncryptionConfig).Provider.Type, EncryptionProviderTypeAESCBC)
}

// defaultShootKubelet sets the defaults of a Shoot's kubelet settings. Settings of a pool replace
// them and get only the defaults for swap.
func defaultShootKubelet(config *KubeletConfig) {
	defaultSwap(config)
	orDuration(&config.ImageMinimumGCAge, 2*time.Minute)
	orDuration(&config.ImageMaximumGCAge, 0)
	orDefault(&config.ImageGCHighThresholdPercent, 50)
	orDefault(&config.ImageGCLowThresholdPercent, 40)
	parallel := config.MaxParallelImagePulls != nil && *config.MaxParallelImagePulls > 1
	orDefault(&config.SerializeImagePulls, !parallel)
}

func defaultSwap(config *KubeletConfig) {
	orDefault(&config.FailSwapOn, true)
	if config.FeatureGates[featureGateNodeSwap] && !*config.FailSwapOn {
		orDefault(&orEmpty(&config.MemorySwap).SwapBehavior, LimitedSwap)
	}
}

func defaultClusterAutoscaler(config *ClusterAutoscaler) {
	orDuration(&config.ScaleDownDelayAfterAdd, time.Hour)
	orDuration(&config.ScaleDownDelayAfterDelete, 0)
	orDuration(&config.ScaleDownDelayAfterFailure, 3*time.Minute)
	orDuration(&config.ScaleDownUnneededTime, 30*time.Minute)
	orDefault(&config.ScaleDownUtilizationThreshold, 0.5)
	orDuration(&config.ScanInterval, 10*time.Second)
	orDefault(&config.Expander, ClusterAutoscalerExpanderLeastWaste)
	orDuration(&config.MaxNodeProvisionTime, 20*time.Minute)
	orDefault(&config.MaxGracefulTerminationSeconds, 600)
	orDefault(&config.IgnoreDaemonsetsUtilization, false)
	orDefault(&config.EmitPerNodeGroupMetrics, false)
	orDefault(&config.Verbosity, 2)
	orDuration(&config.NewPodScaleUpDelay, 0)
	if config.MaxEmptyBulkDelete != nil {
		orDefault(&config.MaxScaleDownParallelism, *config.MaxEmptyBulkDelete)
	}
	orDefault(&config.MaxScaleDownParallelism, 10)
	orDefault(&config.MaxDrainParallelism, 1)
	orDuration(&config.InitialNodeGroupBackoffDuration, 5*time.Minute)
	orDuration(&config.MaxNodeGroupBackoffDuration, 30*time.Minute)
	orDuration(&config.NodeGroupBackoffResetTimeout, 3*time.Hour)
}

func defaultVerticalPodAutoscaler(config *VerticalPodAutoscaler) {
	orDuration(&config.EvictAfterOOMThreshold, 10*time.Minute)
	orDefault(&config.EvictionRateBurst, 1)
	orDefault(&config.EvictionRateLimit, -1)
	orDefault(&config.EvictionTolerance, 0.5)
	orDefault(&config.RecommendationMarginFraction, 0.15)
	orDuration(&config.UpdaterInterval, time.Minute)
	orDuration(&config.RecommenderInterval, time.Minute)
	orDefault(&config.TargetCPUPercentile, 0.9)
	orDefault(&config.RecommendationLowerBoundCPUPercentile, 0.5)
	orDefault(&config.RecommendationUpperBoundCPUPercentile, 0.95)
	orDefault(&config.TargetMemoryPercentile, 0.9)
	orDefault(&config.RecommendationLowerBoundMemoryPercentile, 0.5)
	orDefault(&config.RecommendationUpperBoundMemoryPercentile, 0.95)
	orDuration(&config.CPUHistogramDecayHalfLife, 24*time.Hour)
	orDuration(&config.MemoryHistogramDecayHalfLife, 24*time.Hour)
	orDuration(&config.MemoryAggregationInterval, 24*time.Hour)
	orDefault(&config.MemoryAggregationIntervalCount, 8)
	orDefault(&config.RecommenderUpdateWorkerCount, 10)
}
