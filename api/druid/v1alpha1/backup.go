package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GarbageCollectionPolicy is the way in which old backups are chosen for deletion.
// +kubebuilder:validation:Enum=Exponential;LimitBased
type GarbageCollectionPolicy string

const (
	// GarbageCollectionPolicyExponential keeps the fewer backups, the older they are.
	GarbageCollectionPolicyExponential GarbageCollectionPolicy = "Exponential"
	// GarbageCollectionPolicyLimitBased keeps a number of full snapshots.
	GarbageCollectionPolicyLimitBased GarbageCollectionPolicy = "LimitBased"
)

// CompressionPolicy is an algorithm of compression.
// +kubebuilder:validation:Enum=gzip;lzw;zlib
type CompressionPolicy string

// GzipCompression is the default algorithm.
const GzipCompression CompressionPolicy = "gzip"

// StorageProvider is the kind of an object store.
type StorageProvider string

// BackupSpec holds settings of backups.
type BackupSpec struct {
	// Port of the backup process. Default: 8080.
	// +optional
	Port *int32 `json:"port,omitempty"`
	// Certificates of the backup process.
	// +optional
	TLS *TLSConfig `json:"tls,omitempty"`
	// Image of the backup process. Default: that of etcd-druid.
	// +optional
	Image *string `json:"image,omitempty"`
	// Where backups go. Unset: none are taken.
	// +optional
	Store *StoreSpec `json:"store,omitempty"`
	// Resources of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Settings of the jobs that merge delta snapshots.
	// +optional
	SnapshotCompaction *SnapshotCompactionSpec `json:"snapshotCompaction,omitempty"`
	// When full snapshots are taken, as a cron expression.
	// +optional
	FullSnapshotSchedule *string `json:"fullSnapshotSchedule,omitempty"`
	// How old backups are chosen for deletion: `Exponential` or `LimitBased`.
	// +optional
	GarbageCollectionPolicy *GarbageCollectionPolicy `json:"garbageCollectionPolicy,omitempty"`
	// Number of full snapshots that `LimitBased` keeps.
	// +optional
	MaxBackupsLimitBasedGC *int32 `json:"maxBackupsLimitBasedGC,omitempty"`
	// Interval at which old backups are deleted.
	// +optional
	// +kubebuilder:validation:Format=duration
	GarbageCollectionPeriod *metav1.Duration `json:"garbageCollectionPeriod,omitempty"`
	// Interval at which delta snapshots are taken.
	// +optional
	// +kubebuilder:validation:Format=duration
	DeltaSnapshotPeriod *metav1.Duration `json:"deltaSnapshotPeriod,omitempty"`
	// Size of changes at which a delta snapshot is taken before its time.
	// +optional
	DeltaSnapshotMemoryLimit *resource.Quantity `json:"deltaSnapshotMemoryLimit,omitempty"`
	// How long delta snapshots are kept, beside those since the last full snapshot.
	// +optional
	// +kubebuilder:validation:Format=duration
	DeltaSnapshotRetentionPeriod *metav1.Duration `json:"deltaSnapshotRetentionPeriod,omitempty"`
	// Compression of snapshots.
	// +optional
	SnapshotCompression *CompressionSpec `json:"compression,omitempty"`
	// True serves profiles. Default: false.
	// +optional
	EnableProfiling *bool `json:"enableProfiling,omitempty"`
	// How long a snapshot may take.
	// +optional
	// +kubebuilder:validation:Format=duration
	EtcdSnapshotTimeout *metav1.Duration `json:"etcdSnapshotTimeout,omitempty"`
	// Settings of leader election among backup processes.
	// +optional
	LeaderElection *LeaderElectionSpec `json:"leaderElection,omitempty"`
}

// CompressionSpec holds settings of compression.
type CompressionSpec struct {
	// Whether snapshots are compressed. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Algorithm: `gzip`, `lzw` or `zlib`. Default: `gzip`.
	// +optional
	Policy *CompressionPolicy `json:"policy,omitempty"`
}

// LeaderElectionSpec holds settings of leader election.
type LeaderElectionSpec struct {
	// Interval at which leadership is checked.
	// +optional
	// +kubebuilder:validation:Format=duration
	ReelectionPeriod *metav1.Duration `json:"reelectionPeriod,omitempty"`
	// How long a connection to etcd may take.
	// +optional
	// +kubebuilder:validation:Format=duration
	EtcdConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`
}

// SnapshotCompactionSpec holds settings of compaction jobs.
type SnapshotCompactionSpec struct {
	// Resources of the job.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Number of events at which a job starts.
	// +optional
	EventsThreshold *int64 `json:"eventsThreshold,omitempty"`
	// Number of events at which a full snapshot is taken instead.
	// +optional
	TriggerFullSnapshotThreshold *int64 `json:"triggerFullSnapshotThreshold,omitempty"`
}

// StoreSpec is a place in an object store.
type StoreSpec struct {
	// Bucket.
	// +optional
	Container *string `json:"container,omitempty"`
	// Path within the bucket.
	Prefix string `json:"prefix"`
	// Kind of the object store, as the provider is named.
	// +optional
	Provider *StorageProvider `json:"provider,omitempty"`
	// Secret with the credentials.
	// +optional
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
}
