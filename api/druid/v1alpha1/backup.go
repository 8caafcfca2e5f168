// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GarbageCollectionPolicy is the policy for the deletion of old backups.
// +kubebuilder:validation:Enum=Exponential;LimitBased
type GarbageCollectionPolicy string

const (
	// GarbageCollectionPolicyExponential retains fewer backups the older they are.
	GarbageCollectionPolicyExponential GarbageCollectionPolicy = "Exponential"
	// GarbageCollectionPolicyLimitBased retains a number of full snapshots.
	GarbageCollectionPolicyLimitBased GarbageCollectionPolicy = "LimitBased"
)

// CompressionPolicy is a compression algorithm.
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
	// Image of the backup process. Default: etcd-druid's own.
	// +optional
	Image *string `json:"image,omitempty"`
	// Object store for backups. Unset: no backups are taken.
	// +optional
	Store *StoreSpec `json:"store,omitempty"`
	// Resources of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Settings of the jobs that merge delta snapshots.
	// +optional
	SnapshotCompaction *SnapshotCompactionSpec `json:"snapshotCompaction,omitempty"`
	// Schedule of full snapshots, as a cron expression.
	// +optional
	FullSnapshotSchedule *string `json:"fullSnapshotSchedule,omitempty"`
	// Policy for the deletion of old backups: `Exponential` or `LimitBased`.
	// +optional
	GarbageCollectionPolicy *GarbageCollectionPolicy `json:"garbageCollectionPolicy,omitempty"`
	// Number of full snapshots that `LimitBased` retains.
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
	// Size of changes that triggers an early delta snapshot.
	// +optional
	DeltaSnapshotMemoryLimit *resource.Quantity `json:"deltaSnapshotMemoryLimit,omitempty"`
	// Time for which delta snapshots are retained, in addition to those since the last full
	// snapshot.
	// +optional
	// +kubebuilder:validation:Format=duration
	DeltaSnapshotRetentionPeriod *metav1.Duration `json:"deltaSnapshotRetentionPeriod,omitempty"`
	// Compression of snapshots.
	// +optional
	SnapshotCompression *CompressionSpec `json:"compression,omitempty"`
	// True serves profiling data. Default: false.
	// +optional
	EnableProfiling *bool `json:"enableProfiling,omitempty"`
	// Timeout of a snapshot.
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
	// Timeout of a connection to etcd.
	// +optional
	// +kubebuilder:validation:Format=duration
	EtcdConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`
}

// SnapshotCompactionSpec holds settings of compaction jobs.
type SnapshotCompactionSpec struct {
	// Resources of the job.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Number of events that starts a job.
	// +optional
	EventsThreshold *int64 `json:"eventsThreshold,omitempty"`
	// Number of events that triggers a full snapshot instead.
	// +optional
	TriggerFullSnapshotThreshold *int64 `json:"triggerFullSnapshotThreshold,omitempty"`
}

// StoreSpec is a location in an object store.
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
