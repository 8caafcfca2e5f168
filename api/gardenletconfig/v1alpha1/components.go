// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Logging configures logs of the Seed and control planes.
type Logging struct {
	Enabled           *bool              `json:"enabled,omitempty"`
	Vali              *LogStore          `json:"vali,omitempty"`
	VictoriaLogs      *LogStore          `json:"victoriaLogs,omitempty"`
	ShootNodeLogging  *ShootNodeLogging  `json:"shootNodeLogging,omitempty"`
	ShootEventLogging *ShootEventLogging `json:"shootEventLogging,omitempty"`
}

// LogStore configures a store of logs.
type LogStore struct {
	Enabled *bool           `json:"enabled,omitempty"`
	Garden  *GardenLogStore `json:"garden,omitempty"`
}

// GardenLogStore is the store in namespace garden.
type GardenLogStore struct {
	// Size of the volume. Default: 100Gi.
	Storage *resource.Quantity `json:"storage,omitempty"`
}

// ShootNodeLogging selects the Shoots whose nodes send logs.
type ShootNodeLogging struct {
	ShootPurposes []gardencorev1beta1.ShootPurpose `json:"shootPurposes,omitempty"`
}

// ShootEventLogging logs Events of Shoots.
type ShootEventLogging struct {
	Enabled *bool `json:"enabled,omitempty"`
}

// SNI configures the ingress gateway in front of the API servers.
type SNI struct {
	Ingress *SNIIngress `json:"ingress,omitempty"`
}

// SNIIngress is the Service of an ingress gateway.
type SNIIngress struct {
	ServiceName       *string           `json:"serviceName,omitempty"`
	ServiceExternalIP *string           `json:"serviceExternalIP,omitempty"`
	Namespace         *string           `json:"namespace,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
}

// ETCDConfig configures etcd-druid.
type ETCDConfig struct {
	ETCDController               *ETCDWorkers              `json:"etcdController,omitempty"`
	CustodianController          *ETCDWorkers              `json:"custodianController,omitempty"`
	BackupCompactionController   *BackupCompaction         `json:"backupCompactionController,omitempty"`
	BackupLeaderElection         *ETCDBackupLeaderElection `json:"backupLeaderElection,omitempty"`
	FeatureGates                 map[string]bool           `json:"featureGates,omitempty"`
	DeltaSnapshotRetentionPeriod *metav1.Duration          `json:"deltaSnapshotRetentionPeriod,omitempty"`
}

// ETCDWorkers limits the objects that a controller of etcd-druid reconciles concurrently.
type ETCDWorkers struct {
	Workers *int64 `json:"workers,omitempty"`
}

// BackupCompaction configures the compaction of the snapshots of an etcd.
type BackupCompaction struct {
	ETCDWorkers               `json:",inline"`
	EnableBackupCompaction    *bool            `json:"enableBackupCompaction,omitempty"`
	EventsThreshold           *int64           `json:"eventsThreshold,omitempty"`
	ActiveDeadlineDuration    *metav1.Duration `json:"activeDeadlineDuration,omitempty"`
	MetricsScrapeWaitDuration *metav1.Duration `json:"metricsScrapeWaitDuration,omitempty"`
}

// ETCDBackupLeaderElection configures how the sidecars of an etcd elect the one that takes backups.
type ETCDBackupLeaderElection struct {
	ReelectionPeriod      *metav1.Duration `json:"reelectionPeriod,omitempty"`
	EtcdConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`
}

// ExposureClassHandler serves the ExposureClasses that name it.
type ExposureClassHandler struct {
	Name                string              `json:"name"`
	LoadBalancerService LoadBalancerService `json:"loadBalancerService"`
	SNI                 *SNI                `json:"sni,omitempty"`
}

// LoadBalancerService is the load balancer of an ExposureClassHandler.
type LoadBalancerService struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Class       *string           `json:"class,omitempty"`
}

// Monitoring configures metrics of Shoots.
type Monitoring struct {
	Shoot *ShootMonitoring `json:"shoot,omitempty"`
}

// ShootMonitoring configures the metrics of each Shoot.
type ShootMonitoring struct {
	Enabled        *bool             `json:"enabled,omitempty"`
	RemoteWrite    *RemoteWrite      `json:"remoteWrite,omitempty"`
	ExternalLabels map[string]string `json:"externalLabels,omitempty"`
}

// RemoteWrite sends metrics to another Prometheus.
type RemoteWrite struct {
	URL  string   `json:"url"`
	Keep []string `json:"keep,omitempty"`
}
