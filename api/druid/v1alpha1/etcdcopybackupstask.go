// SPDX-License-Identifier: Apache-2.0

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
	// Desired state of the copy.
	// +optional
	Spec EtcdCopyBackupsTaskSpec `json:"spec,omitempty"`
	// Observed state of the copy.
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

// EtcdCopyBackupsTaskSpec is the desired state of a copy of backups.
type EtcdCopyBackupsTaskSpec struct {
	// Labels of the job's pod.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// Object store that backups are read from.
	SourceStore StoreSpec `json:"sourceStore"`
	// Object store that backups are written to.
	TargetStore StoreSpec `json:"targetStore"`
	// Maximum age of copied backups in days. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBackupAge *uint32 `json:"maxBackupAge,omitempty"`
	// Maximum number of copied backups, newest first. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBackups *uint32 `json:"maxBackups,omitempty"`
	// Whether the copy waits for the last snapshot of the source.
	// +optional
	WaitForFinalSnapshot *WaitForFinalSnapshotSpec `json:"waitForFinalSnapshot,omitempty"`
}

// WaitForFinalSnapshotSpec configures the wait for the last snapshot.
type WaitForFinalSnapshotSpec struct {
	// Whether the copy waits.
	Enabled bool `json:"enabled"`
	// Maximum time that the copy waits. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Format=duration
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// EtcdCopyBackupsTaskStatus is the observed state of a copy of backups.
type EtcdCopyBackupsTaskStatus struct {
	// Conditions: `Succeeded` and `Failed`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Generation that etcd-druid last reconciled.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// Error of the last attempt.
	// +optional
	LastError *string `json:"lastError,omitempty"`
}
