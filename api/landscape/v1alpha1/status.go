// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// LandscapeStatus is the observed state of a landscape.
type LandscapeStatus struct {
	// Conditions of the landscape as a whole: `SourceReady`, `Valid`, `Applied`, `Held` and
	// `Ready`. `Reconciling` and `Stalled` (as in kstatus), `OperationsWaiting`,
	// `GardenletsWorking` and `DependenciesMissing` exist only while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation of this object that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Commit that was last applied completely, as `<ref>@<commit>`.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// Folder of that commit: `spec.source.path` at the time, `.` for the root of the repository.
	// +optional
	LastAppliedPath string `json:"lastAppliedPath,omitempty"`
	// Commit that was last attempted, as `<ref>@<commit>`.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// Commits whose sync began since the last complete apply, newest last, at most 6. The clusters
	// contain their changes completely or in part.
	// +optional
	// +listType=atomic
	Tried []TriedRevision `json:"tried,omitempty"`
	// Windows in the `landscape.yaml` of the last attempted commit, which apply in addition to
	// `spec.windows`.
	// +optional
	// +listType=atomic
	Windows []SyncWindow `json:"windows,omitempty"`
	// Value of the annotation `landscape.pergola.dev/sync-requested` that the operator last
	// handled.
	// +optional
	LastHandledSyncRequest string `json:"lastHandledSyncRequest,omitempty"`
	// Sync in progress, or the last one.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// Failures of the last sync, the root cause first.
	// +optional
	// +listType=atomic
	LastErrors []gardencorev1beta1.LastError `json:"lastErrors,omitempty"`
	// Number of managed objects, by cluster.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Inventory []InventorySummary `json:"inventory,omitempty"`
	// Deletions and recreations that wait for an approval, at most 50.
	// +optional
	// +listType=atomic
	Held []HeldDeletion `json:"held,omitempty"`
	// Number of deletions and recreations that wait for an approval, including those that do not
	// fit into `held`.
	// +optional
	HeldCount int32 `json:"heldCount,omitempty"`
	// Commit that waits to be applied, for example for a window, as `<ref>@<commit>`. Unset: none
	// waits.
	// +optional
	WaitingRevision string `json:"waitingRevision,omitempty"`
	// Ids of `spec.approved` that have approved a deletion. Each counts in one sync; if the same
	// deletions recur, they are held under another id.
	// +optional
	// +listType=set
	UsedApprovals []string `json:"usedApprovals,omitempty"`
	// Last 20 syncs that did something, newest first.
	// +optional
	// +listType=atomic
	History []SyncRecord `json:"history,omitempty"`
	// Executed operations of `operations/`, newest first, at most 50.
	// +optional
	// +listType=atomic
	Operations []OperationRecord `json:"operations,omitempty"`
	// Time at which a sync that failed, or that waits for a window, is retried.
	// +optional
	NextSync *metav1.Time `json:"nextSync,omitempty"`
}

// TriedRevision is a commit whose sync began.
type TriedRevision struct {
	// Commit, as `<ref>@<commit>`.
	Revision string `json:"revision"`
	// Folder of that commit: `spec.source.path` at the time, `.` for the root of the repository.
	// +optional
	Path string `json:"path,omitempty"`
}

// InventorySummary counts the objects of one cluster.
type InventorySummary struct {
	// Name of the cluster: `runtime`, `virtual`.
	Cluster string `json:"cluster"`
	// Number of objects in the inventories.
	Objects int32 `json:"objects"`
}

// HeldDeletion is the deletion or recreation of an object that waits for an approval.
type HeldDeletion struct {
	// Cluster of the object: `runtime`, `virtual`, or the name of the seed whose gardenlet holds
	// it.
	Cluster string `json:"cluster"`
	// Object, as `Kind namespace/name`.
	Object string `json:"object"`
	// Reason why the object is held, as text for people.
	Reason string `json:"reason"`
	// Reason why the object is held, as fields.
	// +optional
	Why HeldReason `json:"why,omitzero"`
	// Id that approves this object alone in `spec.approved`; a diff and a dry run show the same id.
	// For an object of a seed, the entry is `SEED/ID`. Unset: an id cannot approve it, and the
	// reason says what to do.
	// +optional
	Approval string `json:"approval,omitempty"`
	// Id that approves all objects that were held together with this one. Unset: no other object
	// was.
	// +optional
	Together string `json:"together,omitempty"`
}

// SyncResult is the result of a sync.
// +kubebuilder:validation:Enum=Succeeded;Failed;Held;Superseded;Interrupted
type SyncResult string

// Results of a sync.
const (
	SyncSucceeded SyncResult = "Succeeded"
	SyncFailed    SyncResult = "Failed"
	// SyncHeld means that everything was applied except deletions that wait for an approval.
	SyncHeld SyncResult = "Held"
	// SyncSuperseded means that the sync was cancelled for a newer revision.
	SyncSuperseded SyncResult = "Superseded"
	// SyncInterrupted means that the operator ended during the sync.
	SyncInterrupted SyncResult = "Interrupted"
)

// SyncRecord records one sync.
type SyncRecord struct {
	// Revision that was applied, as `<ref>@<commit>`.
	Revision string `json:"revision"`
	// First line of the message of its commit.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Author of the commit.
	// +optional
	Author string `json:"author,omitempty"`
	// Signer of the commit, if signatures are verified.
	// +optional
	Signer string `json:"signer,omitempty"`
	// Cause of the sync: `Commit`, `Interval`, `Request`, `Retry`, `Spec`, `Approval` (only
	// `spec.approved` changed), `Pin` or `Operation` (an annotation on the Garden requested one).
	Trigger string `json:"trigger"`
	// Start of the sync.
	StartTime metav1.Time `json:"startTime"`
	// End of the sync. Unset while it runs.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// Result of the sync.
	// +optional
	Result SyncResult `json:"result,omitempty"`
	// Changes that were made, or the first problem.
	// +optional
	Message string `json:"message,omitempty"`
	// Approvals that the sync used.
	// +optional
	// +listType=atomic
	Approvals []string `json:"approvals,omitempty"`
	// Operations that the sync started because they were requested on the Garden, with the
	// requesters. For people.
	// +optional
	// +listType=atomic
	TakenUp []string `json:"takenUp,omitempty"`
	// Number of objects that were written.
	// +optional
	Changed int32 `json:"changed,omitempty"`
	// Failures of gardenlets on their seeds. Unset: no failure is known.
	// +optional
	Gardenlets string `json:"gardenlets,omitempty"`
}

// OperationRecord records an operation. An operation is executed exactly once.
type OperationRecord struct {
	// Id of the operation: the name of its file in `operations/` without extension.
	ID string `json:"id"`
	// Object, as `Kind namespace/name`.
	Object string `json:"object"`
	// Operation, the value of the annotation `gardener.cloud/operation`.
	Operation string `json:"operation"`
	// Time of execution.
	At metav1.Time `json:"at"`
}

// AnnotationSyncRequested on a Landscape requests a sync now; any new value does. The operator
// records the handled value in `status.lastHandledSyncRequest`.
const AnnotationSyncRequested = "landscape.pergola.dev/sync-requested"

// Condition types of a Landscape.
const (
	// LandscapeSourceReady reports whether the commit was fetched and verified.
	LandscapeSourceReady gardencorev1beta1.ConditionType = "SourceReady"
	// LandscapeValid reports whether the commit is valid.
	LandscapeValid gardencorev1beta1.ConditionType = "Valid"
	// LandscapeApplied reports whether the commit is applied on all clusters.
	LandscapeApplied gardencorev1beta1.ConditionType = "Applied"
	// LandscapeDeletionsHeld reports whether a deletion or recreation waits for an approval. True
	// is not an error.
	LandscapeDeletionsHeld gardencorev1beta1.ConditionType = "Held"
	// LandscapeOperationsWaiting exists, and is True, while operations of the landscape wait to
	// start. This is not an error.
	LandscapeOperationsWaiting gardencorev1beta1.ConditionType = "OperationsWaiting"
	// LandscapeGardenletsWorking exists, and is True, while gardenlets apply changes of the last
	// sync. This is not an error.
	LandscapeGardenletsWorking gardencorev1beta1.ConditionType = "GardenletsWorking"
	// LandscapeDependenciesMissing exists, and is True, while Landscapes of `spec.dependsOn` do not
	// exist. The applied revision stays; no newer one is applied.
	LandscapeDependenciesMissing gardencorev1beta1.ConditionType = "DependenciesMissing"
	// LandscapeReady reports whether everything the commit declares is healthy.
	LandscapeReady gardencorev1beta1.ConditionType = "Ready"
	// LandscapeReconciling is True while a sync runs or is due (kstatus).
	LandscapeReconciling gardencorev1beta1.ConditionType = "Reconciling"
	// LandscapeStalled is True if only a change by a person can help (kstatus).
	LandscapeStalled gardencorev1beta1.ConditionType = "Stalled"
)
