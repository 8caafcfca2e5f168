package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=etcdcopybackupstasks,singular=etcdcopybackupstask
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// EtcdCopyBackupsTask copies backups from one object store to another.
type EtcdCopyBackupsTask struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// What is to be copied.
	// +optional
	Spec EtcdCopyBackupsTaskSpec `json:"spec,omitempty"`
	// How the copy fares.
	// +optional
	Status EtcdCopyBackupsTaskStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// EtcdCopyBackupsTaskList is a list of EtcdCopyBackupsTasks.
type EtcdCopyBackupsTaskList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []EtcdCopyBackupsTask `json:"items"`
}

// EtcdCopyBackupsTaskSpec says what is to be copied.
type EtcdCopyBackupsTaskSpec struct {
	// Labels of the job's pod.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// Where backups are read.
	SourceStore StoreSpec `json:"sourceStore"`
	// Where backups are written.
	TargetStore StoreSpec `json:"targetStore"`
	// Age in days above which backups are not copied. Unset: all are.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBackupAge *uint32 `json:"maxBackupAge,omitempty"`
	// Number of backups copied, newest first. Unset: all are.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBackups *uint32 `json:"maxBackups,omitempty"`
	// Whether the copy waits for the last snapshot of the source.
	// +optional
	WaitForFinalSnapshot *WaitForFinalSnapshotSpec `json:"waitForFinalSnapshot,omitempty"`
}

// WaitForFinalSnapshotSpec says how the copy waits for the last snapshot.
type WaitForFinalSnapshotSpec struct {
	// Whether the copy waits.
	Enabled bool `json:"enabled"`
	// How long the copy waits at most. Unset: for ever.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// EtcdCopyBackupsTaskStatus says how the copy fares.
type EtcdCopyBackupsTaskStatus struct {
	// Verdicts: `Succeeded` and `Failed`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Generation that etcd-druid last worked on.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// Error of the last attempt.
	// +optional
	LastError *string `json:"lastError,omitempty"`
}
