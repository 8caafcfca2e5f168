package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names one aspect of an Etcd's state.
type ConditionType string

const (
	// ConditionTypeReady says whether the etcd cluster has a quorum.
	ConditionTypeReady ConditionType = "Ready"
	// ConditionTypeAllMembersReady says whether every member is ready.
	ConditionTypeAllMembersReady ConditionType = "AllMembersReady"
	// ConditionTypeAllMembersUpdated says whether every member runs what the spec declares.
	ConditionTypeAllMembersUpdated ConditionType = "AllMembersUpdated"
	// ConditionTypeBackupReady says whether backups are taken as scheduled.
	ConditionTypeBackupReady ConditionType = "BackupReady"
	// ConditionTypeDataVolumesReady says whether the volumes of all members are bound.
	ConditionTypeDataVolumesReady ConditionType = "DataVolumesReady"
	// ConditionTypeLastSnapshotCompactionSucceeded says whether the last compaction of snapshots succeeded.
	ConditionTypeLastSnapshotCompactionSucceeded ConditionType = "LastSnapshotCompactionSucceeded"
	// EtcdCopyBackupsTaskSucceeded says whether a copy task succeeded.
	EtcdCopyBackupsTaskSucceeded ConditionType = "Succeeded"
	// EtcdCopyBackupsTaskFailed says whether a copy task failed.
	EtcdCopyBackupsTaskFailed ConditionType = "Failed"
)

// ConditionStatus is the outcome of the check behind a condition.
type ConditionStatus string

const (
	// ConditionTrue means the check passed.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means the check failed.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means the check could not be made.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means the check fails, but not for long.
	ConditionProgressing ConditionStatus = "Progressing"
	// ConditionCheckError means the check itself failed.
	ConditionCheckError ConditionStatus = "ConditionCheckError"
)

// Condition is the last verdict on one aspect of an Etcd's state.
type Condition struct {
	// Name of the condition; unique within the list.
	Type ConditionType `json:"type"`
	// Verdict: `True`, `False`, `Unknown`, `Progressing` or `ConditionCheckError`.
	Status ConditionStatus `json:"status"`
	// Time at which the status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Time at which the condition was last written.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Machine-readable cause of the last change.
	Reason string `json:"reason"`
	// Explanation of the last change for a person.
	Message string `json:"message"`
}

// LastOperationType is the kind of work an operation does: `Create`, `Reconcile` or `Delete`.
type LastOperationType string

// LastOperationState is how far an operation has come.
type LastOperationState string

const (
	// LastOperationTypeCreate creates an etcd cluster.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile brings an etcd cluster to its spec.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete deletes an etcd cluster.
	LastOperationTypeDelete LastOperationType = "Delete"

	// LastOperationStateProcessing means the operation runs.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded means the operation is done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError means the operation failed and will be repeated.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateRequeue means the operation waits for something and will be repeated.
	LastOperationStateRequeue LastOperationState = "Requeue"
)

// LastOperation is the operation in progress, or the last one.
type LastOperation struct {
	// Kind of work: `Create`, `Reconcile` or `Delete`.
	Type LastOperationType `json:"type"`
	// How far the operation has come: `Processing`, `Succeeded`, `Error` or `Requeue`.
	State LastOperationState `json:"state"`
	// What the operation does or how it ended, for a person.
	Description string `json:"description"`
	// Identity of the reconcile run, as in etcd-druid's logs.
	RunID string `json:"runID"`
	// Time of the last change of this record.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// ErrorCode is the class of an error of etcd-druid.
type ErrorCode string

// LastError is one error of the last operation.
type LastError struct {
	// Class of the error.
	Code ErrorCode `json:"code"`
	// What failed, for a person.
	Description string `json:"description"`
	// Time at which the error was seen.
	ObservedAt metav1.Time `json:"observedAt"`
}
