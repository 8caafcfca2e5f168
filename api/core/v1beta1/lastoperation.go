// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastOperationType is the type of an operation.
type LastOperationType string

const (
	// LastOperationTypeCreate builds an object for the first time. The type stays Create until the
	// operation succeeds once.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile reconciles an existing object with its declaration.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete tears an object down.
	LastOperationTypeDelete LastOperationType = "Delete"
	// LastOperationTypeMigrate tears a control plane down on its source seed without affecting the
	// cluster's workload.
	LastOperationTypeMigrate LastOperationType = "Migrate"
	// LastOperationTypeRestore builds a migrated control plane on its destination seed.
	LastOperationTypeRestore LastOperationType = "Restore"
)

// LastOperationState is the state of an operation.
type LastOperationState string

const (
	// LastOperationStateProcessing means the operation runs.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded means the operation is done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError means the last attempt failed and will be retried.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateFailed means the operation failed and is not retried without a change or a
	// retry request.
	LastOperationStateFailed LastOperationState = "Failed"
	// LastOperationStatePending means the operation has not started and waits for something.
	LastOperationStatePending LastOperationState = "Pending"
	// LastOperationStateAborted means the operation was interrupted, for example by a restart.
	LastOperationStateAborted LastOperationState = "Aborted"
)

// LastOperation is the operation in progress, or the last one.
type LastOperation struct {
	// Description of the current step or of the result, for people.
	Description string `json:"description"`
	// Time of the last change of this record.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Progress of the operation: the share of its finished steps, in percent.
	Progress int32 `json:"progress"`
	// State of the operation: `Aborted`, `Processing`, `Succeeded`, `Error`, `Failed` or `Pending`.
	State LastOperationState `json:"state"`
	// Type of the operation: `Create`, `Reconcile`, `Delete`, `Migrate` or `Restore`.
	Type LastOperationType `json:"type"`
}

// LastError is one failure of the last operation.
type LastError struct {
	// Description of the failure and its cause, for people.
	Description string `json:"description"`
	// Step of the flow that failed.
	// +optional
	TaskID *string `json:"taskID,omitempty"`
	// Classes of the failure.
	// +optional
	// +listType=atomic
	Codes []ErrorCode `json:"codes,omitempty"`
	// Time of the failure.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}

// Gardener identifies the controller instance that last reconciled an object.
type Gardener struct {
	// Identity of the instance: the pod's host name or container id.
	ID string `json:"id"`
	// Name of the instance: the pod name.
	Name string `json:"name"`
	// Version of the instance. A change of the version alone causes a reconciliation.
	Version string `json:"version"`
}
