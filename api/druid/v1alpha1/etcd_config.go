// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MetricsLevel is the level of detail of etcd's metrics.
// +kubebuilder:validation:Enum=basic;extensive
type MetricsLevel string

const (
	// MetricsLevelBasic is the level without histograms.
	MetricsLevelBasic MetricsLevel = "basic"
	// MetricsLevelExtensive is the level with histograms.
	MetricsLevelExtensive MetricsLevel = "extensive"
)

// EtcdConfig holds settings of etcd.
type EtcdConfig struct {
	// Maximum size of the database.
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`
	// Number of applied entries held in memory before a snapshot.
	// +optional
	SnapshotCount *int64 `json:"snapshotCount,omitempty"`
	// Schedule of defragmentation, as a cron expression.
	// +optional
	DefragmentationSchedule *string `json:"defragmentationSchedule,omitempty"`
	// Port for other members. Default: 2380.
	// +optional
	ServerPort *int32 `json:"serverPort,omitempty"`
	// Port for clients. Default: 2379.
	// +optional
	ClientPort *int32 `json:"clientPort,omitempty"`
	// Port of the process that wraps etcd. Default: 9095.
	// +optional
	WrapperPort *int32 `json:"wrapperPort,omitempty"`
	// Image of etcd. Default: etcd-druid's own.
	// +optional
	Image *string `json:"image,omitempty"`
	// Secret with user name and password.
	// +optional
	AuthSecretRef *corev1.SecretReference `json:"authSecretRef,omitempty"`
	// Level of detail of the metrics: `basic` or `extensive`.
	// +optional
	Metrics *MetricsLevel `json:"metrics,omitempty"`
	// Resources of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Certificates for clients.
	// +optional
	ClientUrlTLS *TLSConfig `json:"clientUrlTls,omitempty"`
	// Certificates for members.
	// +optional
	PeerUrlTLS *TLSConfig `json:"peerUrlTls,omitempty"`
	// Timeout of a defragmentation.
	// +optional
	// +kubebuilder:validation:Format=duration
	EtcdDefragTimeout *metav1.Duration `json:"etcdDefragTimeout,omitempty"`
	// Interval of heartbeats between members. Default: 10s.
	// +optional
	// +kubebuilder:validation:Format=duration
	HeartbeatDuration *metav1.Duration `json:"heartbeatDuration,omitempty"`
	// Settings of the Service for clients.
	// +optional
	ClientService *ClientService `json:"clientService,omitempty"`
}

// TLSConfig names Secrets with certificates.
type TLSConfig struct {
	// Secret with the CA certificates.
	TLSCASecretRef SecretReference `json:"tlsCASecretRef"`
	// Secret with the server certificate.
	ServerTLSSecretRef corev1.SecretReference `json:"serverTLSSecretRef"`
	// Secret with the client certificate.
	// +optional
	ClientTLSSecretRef corev1.SecretReference `json:"clientTLSSecretRef,omitempty"`
}

// SecretReference is a Secret and one of its keys.
type SecretReference struct {
	corev1.SecretReference `json:",inline"`
	// Key within the Secret.
	// +optional
	DataKey *string `json:"dataKey,omitempty"`
}

// ClientService holds settings of the Service for clients.
type ClientService struct {
	// Annotations of the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels of the Service.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Traffic distribution of the Service, for example `PreferClose`.
	// +optional
	TrafficDistribution *string `json:"trafficDistribution,omitempty"`
}
