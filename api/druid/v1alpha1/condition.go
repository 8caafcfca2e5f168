// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names one aspect of an Etcd's state.
type ConditionType string

const (
	// ConditionTypeReady reports whether the etcd cluster has a quorum.
	ConditionTypeReady ConditionType = "Ready"
	// ConditionTypeAllMembersReady reports whether every member is ready.
	ConditionTypeAllMembersReady ConditionType = "AllMembersReady"
	// ConditionTypeAllMembersUpdated reports whether every member runs what the spec declares.
	ConditionTypeAllMembersUpdated ConditionType = "AllMembersUpdated"
	// ConditionTypeBackupReady reports whether backups are taken as scheduled.
	ConditionTypeBackupReady ConditionType = "BackupReady"
	// ConditionTypeDataVolumesReady reports whether the volumes of all members are bound.
	ConditionTypeDataVolumesReady ConditionType = "DataVolumesReady"
	// ConditionTypeLastSnapshotCompactionSucceeded reports whether the last compaction of snapshots
	// succeeded.
	ConditionTypeLastSnapshotCompactionSucceeded ConditionType = "LastSnapshotCompactionSucceeded"
	// EtcdCopyBackupsTaskSucceeded reports whether a copy task succeeded.
	EtcdCopyBackupsTaskSucceeded ConditionType = "Succeeded"
	// EtcdCopyBackupsTaskFailed reports whether a copy task failed.
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
	// ConditionProgressing means the check has not failed for long yet.
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
	// Explanation of the last change for people.
	Message string `json:"message"`
}

// LastOperationType is the type of an operation: `Create`, `Reconcile` or `Delete`.
type LastOperationType string

// LastOperationState is the state of an operation.
type LastOperationState string

const (
	// LastOperationTypeCreate creates an etcd cluster.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile reconciles an etcd cluster with its spec.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete deletes an etcd cluster.
	LastOperationTypeDelete LastOperationType = "Delete"

	// LastOperationStateProcessing means the operation runs.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded means the operation is done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError means the operation failed and will be retried.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateRequeue means the operation waits for a dependency and will be retried.
	LastOperationStateRequeue LastOperationState = "Requeue"
)

// LastOperation is the operation in progress, or the last one.
type LastOperation struct {
	// Type of the operation: `Create`, `Reconcile` or `Delete`.
	Type LastOperationType `json:"type"`
	// State of the operation: `Processing`, `Succeeded`, `Error` or `Requeue`.
	State LastOperationState `json:"state"`
	// Description of the current step or of the result, for people.
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
	// Description of the failure, for people.
	Description string `json:"description"`
	// Time at which the error was observed.
	ObservedAt metav1.Time `json:"observedAt"`
}
