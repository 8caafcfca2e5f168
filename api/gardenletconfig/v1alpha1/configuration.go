// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// GardenletConfiguration is the configuration file of a gardenlet.
type GardenletConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// Access to the garden.
	GardenClientConnection *GardenClientConnection `json:"gardenClientConnection,omitempty"`
	// Access to the cluster of the Seed.
	SeedClientConnection *ClientConnection `json:"seedClientConnection,omitempty"`
	// Access to the clusters of Shoots.
	ShootClientConnection *ClientConnection `json:"shootClientConnection,omitempty"`
	// Settings of the controllers.
	Controllers *Controllers `json:"controllers,omitempty"`
	// Capacity of the Seed, such as the number of Shoots.
	Resources *Resources `json:"resources,omitempty"`
	// Election of the active replica.
	LeaderElection *LeaderElection `json:"leaderElection,omitempty"`
	// Log level: debug, info or error. Default: info.
	LogLevel string `json:"logLevel,omitempty"`
	// Log format: json or text. Default: json.
	LogFormat string `json:"logFormat,omitempty"`
	// Addresses of probes and metrics.
	Server *Servers `json:"server,omitempty"`
	// Profiling over HTTP.
	Debugging *Debugging `json:"debugging,omitempty"`
	// Feature gates that differ from their defaults.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Seed that the gardenlet registers.
	SeedConfig *SeedConfig `json:"seedConfig,omitempty"`
	// Logs of Seed and control planes.
	Logging *Logging `json:"logging,omitempty"`
	// Ingress gateway in front of the API servers.
	SNI *SNI `json:"sni,omitempty"`
	// Settings of etcd-druid.
	ETCDConfig *ETCDConfig `json:"etcdConfig,omitempty"`
	// Handlers of ExposureClasses.
	ExposureClassHandlers []ExposureClassHandler `json:"exposureClassHandlers,omitempty"`
	// Monitoring of Shoots.
	Monitoring *Monitoring `json:"monitoring,omitempty"`
	// Tolerations that pods get by default.
	NodeToleration *NodeToleration `json:"nodeToleration,omitempty"`
}

// SeedConfig is the Seed that its gardenlet registers. Only labels and annotations of the metadata
// are used.
type SeedConfig struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Seed as declared.
	Spec gardencorev1beta1.SeedSpec `json:"spec,omitempty"`
}

// ClientConnection configures access to an API server.
type ClientConnection struct {
	// Path of a kubeconfig.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Media types that the client accepts.
	AcceptContentTypes string `json:"acceptContentTypes,omitempty"`
	// Media type that the client sends.
	ContentType string `json:"contentType,omitempty"`
	// Requests per second.
	QPS float32 `json:"qps,omitempty"`
	// Requests above qps for a short time.
	Burst int32 `json:"burst,omitempty"`
}

// GardenClientConnection configures access to the API server of the garden.
type GardenClientConnection struct {
	ClientConnection `json:",inline"`
	// Address of the garden for gardenlets in other clusters.
	GardenClusterAddress *string `json:"gardenClusterAddress,omitempty"`
	// Secret with the kubeconfig for the first access.
	BootstrapKubeconfig *corev1.SecretReference `json:"bootstrapKubeconfig,omitempty"`
	// Secret in which the gardenlet stores its own kubeconfig.
	KubeconfigSecret *corev1.SecretReference `json:"kubeconfigSecret,omitempty"`
	// Validity of the certificate in the kubeconfig.
	KubeconfigValidity *KubeconfigValidity `json:"kubeconfigValidity,omitempty"`
}

// KubeconfigValidity defines how long a certificate is valid and when it is renewed.
type KubeconfigValidity struct {
	// Validity that the gardenlet requests.
	Validity *metav1.Duration `json:"validity,omitempty"`
	// Share of the validity after which the certificate is renewed at the earliest, in percent.
	// Default: 70.
	AutoRotationJitterPercentageMin *int32 `json:"autoRotationJitterPercentageMin,omitempty"`
	// Share of the validity after which the certificate is renewed at the latest, in percent.
	// Default: 90.
	AutoRotationJitterPercentageMax *int32 `json:"autoRotationJitterPercentageMax,omitempty"`
}

// LeaderElection configures the election of the active replica.
type LeaderElection struct {
	LeaderElect       *bool            `json:"leaderElect,omitempty"`
	LeaseDuration     *metav1.Duration `json:"leaseDuration,omitempty"`
	RenewDeadline     *metav1.Duration `json:"renewDeadline,omitempty"`
	RetryPeriod       *metav1.Duration `json:"retryPeriod,omitempty"`
	ResourceLock      string           `json:"resourceLock,omitempty"`
	ResourceName      string           `json:"resourceName,omitempty"`
	ResourceNamespace string           `json:"resourceNamespace,omitempty"`
}

// Debugging configures profiling over HTTP.
type Debugging struct {
	EnableProfiling           *bool `json:"enableProfiling,omitempty"`
	EnableContentionProfiling *bool `json:"enableContentionProfiling,omitempty"`
}

// Servers holds the addresses that a gardenlet listens on.
type Servers struct {
	HealthProbes *Server `json:"healthProbes,omitempty"`
	Metrics      *Server `json:"metrics,omitempty"`
}

// Server is an address to listen on.
type Server struct {
	BindAddress string `json:"bindAddress,omitempty"`
	Port        int    `json:"port,omitempty"`
}

// Resources is the capacity of a Seed.
type Resources struct {
	// Capacity of the Seed.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Part of the capacity that is reserved for Gardener.
	Reserved corev1.ResourceList `json:"reserved,omitempty"`
}

// NodeToleration holds the seconds for which pods stay on a node that is not ready or unreachable.
type NodeToleration struct {
	DefaultNotReadyTolerationSeconds    *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}
