package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastOperationType is the kind of work an operation does.
type LastOperationType string

const (
	// LastOperationTypeCreate builds something for the first time. It stays Create until it has succeeded once.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile brings something that exists to its declaration.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete takes something down.
	LastOperationTypeDelete LastOperationType = "Delete"
	// LastOperationTypeMigrate takes a control plane down on its source seed without touching what it runs.
	LastOperationTypeMigrate LastOperationType = "Migrate"
	// LastOperationTypeRestore builds a migrated control plane on its destination seed.
	LastOperationTypeRestore LastOperationType = "Restore"
)

// LastOperationState is how far an operation has come.
type LastOperationState string

const (
	// LastOperationStateProcessing means the operation runs.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded means the operation is done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError means the last attempt failed and will be repeated.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateFailed means the operation failed and is not repeated without a change or a retry.
	LastOperationStateFailed LastOperationState = "Failed"
	// LastOperationStatePending means the operation has not started and waits for something.
	LastOperationStatePending LastOperationState = "Pending"
	// LastOperationStateAborted means the operation was interrupted, for example by a restart.
	LastOperationStateAborted LastOperationState = "Aborted"
)

// LastOperation is the operation in progress, or the last one.
type LastOperation struct {
	// What the operation does now or how it ended, for a person.
	Description string `json:"description"`
	// Time of the last change of this record.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Share of the operation's steps that are done, in percent.
	Progress int32 `json:"progress"`
	// How far the operation has come: `Aborted`, `Processing`, `Succeeded`, `Error`, `Failed` or `Pending`.
	State LastOperationState `json:"state"`
	// Kind of work: `Create`, `Reconcile`, `Delete`, `Migrate` or `Restore`.
	Type LastOperationType `json:"type"`
}

// LastError is one failure of the last operation.
type LastError struct {
	// What failed and why, for a person.
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

// Gardener identifies the controller instance that last worked on an object.
type Gardener struct {
	// Identity of the instance: the pod's host name or container id.
	ID string `json:"id"`
	// Name of the instance: the pod name.
	Name string `json:"name"`
	// Version of the instance. A change of it alone is a reason to reconcile.
	Version string `json:"version"`
}
