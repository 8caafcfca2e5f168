package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// LandscapeStatus says what was applied, and how it fares.
type LandscapeStatus struct {
	// Verdicts on the landscape as a whole: `SourceReady`, `Valid`, `Applied`, `Held`, `Ready`; and, in the terms of kstatus and only while
	// they are true, `Reconciling` and `Stalled`; also only while they are true, `OperationsWaiting`, `GardenletsWorking` and
	// `DependenciesMissing`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation of this object that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Commit that was last applied completely, as `<ref>@<commit>`.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// Folder of it that was applied: `spec.source.path` at that time, `.` for the repository itself.
	// +optional
	LastAppliedPath string `json:"lastAppliedPath,omitempty"`
	// Commit that was last tried, as `<ref>@<commit>`.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// Commits of which a sync began since the last one was applied completely, the newest last, 6 at most: what they have changed is in the clusters,
	// completely or in part.
	// +optional
	// +listType=atomic
	Tried []TriedRevision `json:"tried,omitempty"`
	// Windows in the `landscape.yaml` of the commit that was tried last, which count besides `spec.windows`.
	// +optional
	// +listType=atomic
	Windows []SyncWindow `json:"windows,omitempty"`
	// Value of the annotation `landscape.pergola.dev/sync-requested` that was last acted upon.
	// +optional
	LastHandledSyncRequest string `json:"lastHandledSyncRequest,omitempty"`
	// Sync in progress, or the last one.
	// +optional
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// Failures of the last sync, the root cause first.
	// +optional
	// +listType=atomic
	LastErrors []gardencorev1beta1.LastError `json:"lastErrors,omitempty"`
	// How many objects are managed, by cluster.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Inventory []InventorySummary `json:"inventory,omitempty"`
	// Deletions and recreations that wait for an approval, 50 at most.
	// +optional
	// +listType=atomic
	Held []HeldDeletion `json:"held,omitempty"`
	// How many deletions and recreations wait for an approval, with those that do not fit into `held`.
	// +optional
	HeldCount int32 `json:"heldCount,omitempty"`
	// Commit that is to be applied and waits, such as for a window, as `<ref>@<commit>`. Unset: none does.
	// +optional
	WaitingRevision string `json:"waitingRevision,omitempty"`
	// Ids of `spec.approved` that have let something pass. Each does so in one sync; the same deletions are held under another id when they come up
	// again.
	// +optional
	// +listType=set
	UsedApprovals []string `json:"usedApprovals,omitempty"`
	// The last 20 syncs that did something, the newest first.
	// +optional
	// +listType=atomic
	History []SyncRecord `json:"history,omitempty"`
	// Operations of `operations/` that were executed, the newest first, 50 at most.
	// +optional
	// +listType=atomic
	Operations []OperationRecord `json:"operations,omitempty"`
	// When a sync that failed, or that waits for a window, is tried again.
	// +optional
	NextSync *metav1.Time `json:"nextSync,omitempty"`
}

// TriedRevision is a commit of which a sync began.
type TriedRevision struct {
	// Commit, as `<ref>@<commit>`.
	Revision string `json:"revision"`
	// Folder of it that was tried: `spec.source.path` at that time, `.` for the repository itself.
	// +optional
	Path string `json:"path,omitempty"`
}

// InventorySummary counts the objects of one cluster.
type InventorySummary struct {
	// Name of the cluster: `runtime`, `virtual`.
	Cluster string `json:"cluster"`
	// Objects in the inventories.
	Objects int32 `json:"objects"`
}

// HeldDeletion is an object that is not deleted, or not recreated, before somebody approves it.
type HeldDeletion struct {
	// Cluster of the object: `runtime`, `virtual`, or the name of the seed whose gardenlet holds it.
	Cluster string `json:"cluster"`
	// Object, as `Kind namespace/name`.
	Object string `json:"object"`
	// Why it is held, for people.
	Reason string `json:"reason"`
	// Why it is held, as fields.
	// +optional
	Why HeldReason `json:"why,omitzero"`
	// Id that approves this object alone, in `spec.approved`: the one that a difference and a dry run show. Of a seed it stands there as
	// `SEED/ID`. Unset: it cannot be approved like that, the reason says what to do.
	// +optional
	Approval string `json:"approval,omitempty"`
	// Id that approves it with all that was held with it. Unset: nothing was.
	// +optional
	Together string `json:"together,omitempty"`
}

// SyncResult is how a sync ended.
// +kubebuilder:validation:Enum=Succeeded;Failed;Held;Superseded;Interrupted
type SyncResult string

// How syncs end.
const (
	SyncSucceeded SyncResult = "Succeeded"
	SyncFailed    SyncResult = "Failed"
	// SyncHeld applied everything but deletions that wait for an approval.
	SyncHeld SyncResult = "Held"
	// SyncSuperseded was given up for a newer revision.
	SyncSuperseded SyncResult = "Superseded"
	// SyncInterrupted was cut off: the operator ended in the middle of it.
	SyncInterrupted SyncResult = "Interrupted"
)

// SyncRecord is one sync.
type SyncRecord struct {
	// Revision that was applied, as `<ref>@<commit>`.
	Revision string `json:"revision"`
	// First line of the message of its commit.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Author of the commit.
	// +optional
	Author string `json:"author,omitempty"`
	// Who signed it, where signatures are verified.
	// +optional
	Signer string `json:"signer,omitempty"`
	// What began the sync: `Commit`, `Interval`, `Request`, `Retry`, `Spec`, `Approval` (nothing but `spec.approved` changed), `Pin` or
	// `Operation` (the Garden was asked for one by annotation).
	Trigger string `json:"trigger"`
	// When it began.
	StartTime metav1.Time `json:"startTime"`
	// When it ended. Unset while it goes on.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// How it ended.
	// +optional
	Result SyncResult `json:"result,omitempty"`
	// What was done, or the first problem.
	// +optional
	Message string `json:"message,omitempty"`
	// Approvals by which something passed.
	// +optional
	// +listType=atomic
	Approvals []string `json:"approvals,omitempty"`
	// Operations that were taken up with it because somebody asked the Garden for them, and who had asked, for people.
	// +optional
	// +listType=atomic
	TakenUp []string `json:"takenUp,omitempty"`
	// Objects that were written.
	// +optional
	Changed int32 `json:"changed,omitempty"`
	// What gardenlets could not do of it on their seeds. Unset: nothing is known to have gone wrong there.
	// +optional
	Gardenlets string `json:"gardenlets,omitempty"`
}

// OperationRecord is an operation that was executed, exactly once.
type OperationRecord struct {
	// Id, the name of its file in `operations/` without ending.
	ID string `json:"id"`
	// Object, as `Kind namespace/name`.
	Object string `json:"object"`
	// Operation, the value of the annotation `gardener.cloud/operation`.
	Operation string `json:"operation"`
	// When it was executed.
	At metav1.Time `json:"at"`
}

// AnnotationSyncRequested on a Landscape asks for a sync now; any new value does. The operator notes the value that it acted upon in
// `status.lastHandledSyncRequest`.
const AnnotationSyncRequested = "landscape.pergola.dev/sync-requested"

// Condition types of a Landscape.
const (
	// LandscapeSourceReady says whether the commit was fetched and verified.
	LandscapeSourceReady gardencorev1beta1.ConditionType = "SourceReady"
	// LandscapeValid says whether the commit is valid.
	LandscapeValid gardencorev1beta1.ConditionType = "Valid"
	// LandscapeApplied says whether the commit is applied on all clusters.
	LandscapeApplied gardencorev1beta1.ConditionType = "Applied"
	// LandscapeHeld says whether something waits for an approval. True is not an error.
	LandscapeHeld gardencorev1beta1.ConditionType = "Held"
	// LandscapeOperationsWaiting is True, and there, while operations of the landscape wait to be taken up. That is no error.
	LandscapeOperationsWaiting gardencorev1beta1.ConditionType = "OperationsWaiting"
	// LandscapeGardenletsWorking is True, and there, while gardenlets are at work on what the last sync has changed. That is no error.
	LandscapeGardenletsWorking gardencorev1beta1.ConditionType = "GardenletsWorking"
	// LandscapeDependenciesMissing is True, and there, while Landscapes of `spec.dependsOn` do not exist. What is applied stays, nothing newer is.
	LandscapeDependenciesMissing gardencorev1beta1.ConditionType = "DependenciesMissing"
	// LandscapeReady says whether everything the commit declares is healthy.
	LandscapeReady gardencorev1beta1.ConditionType = "Ready"
	// LandscapeReconciling is true while a sync goes on or is due (kstatus).
	LandscapeReconciling gardencorev1beta1.ConditionType = "Reconciling"
	// LandscapeStalled is true when nothing gets better before a person changes something (kstatus).
	LandscapeStalled gardencorev1beta1.ConditionType = "Stalled"
)
