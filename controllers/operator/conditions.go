// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source"
)

// Reasons of conditions.
const (
	reasonApplied           = "Applied"
	reasonApplying          = "Applying"
	reasonPolling           = "Asking"
	reasonApplyFailed       = landscapev1alpha1.ReasonApplyFailed
	reasonDrift             = "DriftNotRepaired"
	reasonFetched           = "Fetched"
	reasonHeld              = "Held"
	reasonInvalid           = "Invalid"
	reasonApprovalLapsed    = "ApprovalLapsed"
	reasonDependencyMissing = "NotFound"
	reasonNameTaken         = landscapev1alpha1.ReasonNameTaken
	reasonNotMaintained     = "NotKept"
	reasonNothingHeld       = "NothingHeld"
	reasonOperationsPending = "NotTakenUp"
	reasonOperationsExpired = "RanOut"
	reasonPending           = "Pending"
	reasonReconciling       = "Reconciling"
	reasonRetrying          = "Retrying"
	reasonSourceNotReady    = "SourceNotReady"
	reasonStalled           = "Stalled"
	reasonSuspended         = landscapev1alpha1.ReasonSuspended
	reasonUnhealthy         = "Unhealthy"
	reasonValid             = "Valid"
	reasonWorking           = "Working"
	reasonWaiting           = landscapev1alpha1.ReasonWaiting
)

// conditionInput is the input of the conditions of a Landscape.
type conditionInput struct {
	revisions   revisionNames
	objectState objectState
	readState   fetchState
	lastSync    lastSyncState
	pending     pendingState
	current     progressState
	clusters    clusterState
}

// revisionNames are the revisions of a view.
type revisionNames struct {
	// wanted, attempted and applied are revisions as people read them; it is empty if there is
	// none.
	wanted, attempted, applied string
	// partial is the revision whose sync started and did not complete; it is empty for none and
	// during the sync.
	partial string
	pin     *landscapev1alpha1.Pin
	// excludedByPin is the revision that the pin excludes.
	excludedByPin string
}

// objectState is the state of the object itself.
type objectState struct {
	// misconfiguration is the error in the object itself.
	misconfiguration string
	// isNameTaken means that the error is the name.
	isNameTaken bool
	// missingDependencies lists the Landscapes of spec.hasDependency that do not exist.
	missingDependencies string
	suspendReason       string
}

// fetchState is the state of the source and its files.
type fetchState struct {
	sourceErr error
	// isUnread means that attempted could not be fetched or verified, so its validity is unknown.
	isUnread bool
	// validErr is why wanted cannot be applied.
	validErr error
	// isReading means that attempted is being read, so its validity is unknown.
	isReading bool
}

// lastSyncState is the result of the last sync.
type lastSyncState struct {
	// problems are the errors of the last sync.
	problems []string
	// isPermanent means that a retry does not help.
	isPermanent bool
	// maintainErr is why the applied revision is not maintained.
	maintainErr error
	notes       []string
}

// pendingState counts and describes deletions and operations that wait.
type pendingState struct {
	heldCount int
	// awaitingApproval is how many of the held ones wait for an approval.
	awaitingApproval int
	// heldText describes the held deletions, operations the pending operations.
	heldText   string
	operations []string
	// expiredOperations is how many operations expired.
	expiredOperations int
}

// progressState describes work in progress.
type progressState struct {
	// gardenletsText describes the gardenlets that the sync waits for; it is empty for none.
	gardenletsText string
	// isPolling means that the source is being polled on request.
	isPolling bool
	// syncProgress is the progress of the current sync; it is empty for none.
	syncProgress string
	// isApplying means that the sync applies a revision and does not read one.
	isApplying bool
	// validationProgress names a revision that is validated while it waits; it is empty for none.
	validationProgress string
	// awaitsVerdict means that the Landscape was not ready before the operator restarted, and the
	// new process has no verdict yet.
	awaitsVerdict bool
	// waitReason is the reason why a due sync waits.
	waitReason string
}

// clusterState is the state of the clusters.
type clusterState struct {
	unhealthy []string
	// drift lists changes by others that cannot be repaired.
	drift []string
}

// updateConditions updates the conditions of a Landscape.
func updateConditions(b *condition.Builder, old []gardencorev1beta1.Condition, v conditionInput) []gardencorev1beta1.Condition {
	set := func(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus, reason, message string) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(old, kind), status, reason, message)
	}
	out := condition.Remove(old, landscapev1alpha1.LandscapeReconciling, landscapev1alpha1.LandscapeStalled, landscapev1alpha1.LandscapeOperationsWaiting,
		landscapev1alpha1.LandscapeGardenletsWorking, landscapev1alpha1.LandscapeDependenciesMissing)
	status, reason, message := v.sourceCondition()
	updates := []gardencorev1beta1.Condition{set(landscapev1alpha1.LandscapeSourceReady, status, reason, message)}
	status, reason, message = v.validCondition()
	updates = append(updates, set(landscapev1alpha1.LandscapeValid, status, reason, message))
	status, reason, message = v.appliedCondition()
	updates = append(updates, set(landscapev1alpha1.LandscapeApplied, status, reason, message))
	if v.pending.heldCount > 0 {
		updates = append(updates, set(landscapev1alpha1.LandscapeDeletionsHeld, gardencorev1beta1.ConditionTrue, reasonHeld, v.pending.heldText+": see status.held"))
	} else {
		updates = append(updates, set(landscapev1alpha1.LandscapeDeletionsHeld, gardencorev1beta1.ConditionFalse, reasonNothingHeld, "nothing waits for an approval"))
	}
	if len(v.pending.operations) > 0 {
		updates = append(updates, set(landscapev1alpha1.LandscapeOperationsWaiting, gardencorev1beta1.ConditionTrue, operationsReason(v.pending.operations, v.pending.expiredOperations), joinWithLimit(v.pending.operations)))
	}
	if v.current.gardenletsText != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeGardenletsWorking, gardencorev1beta1.ConditionTrue, reasonWorking, v.current.gardenletsText))
	}
	notes := v.lastSync.notes
	if v.objectState.missingDependencies != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeDependenciesMissing, gardencorev1beta1.ConditionTrue, reasonDependencyMissing, v.objectState.missingDependencies))
		if v.current.waitReason == "" { // else the waiting text says it
			notes = append(notes[:len(notes):len(notes)], v.objectState.missingDependencies)
		}
	}
	status, reason, message = v.readyCondition()
	updates = append(updates, set(landscapev1alpha1.LandscapeReady, status, reason, strings.Join(append([]string{v.pinPrefix() + message}, notes...), "; ")))
	if why := v.stalledText(); why != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeStalled, gardencorev1beta1.ConditionTrue, reasonStalled, why))
	} else if reason, why := v.reconcilingCondition(); why != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeReconciling, gardencorev1beta1.ConditionTrue, reason, why))
	}
	return condition.Merge(out, updates...)
}

// pinPrefix is the prefix of every message about a pinned Landscape.
func (v conditionInput) pinPrefix() string {
	if v.revisions.pin == nil {
		return ""
	}
	text := "PINNED to " + v.revisions.pin.Revision
	if v.revisions.pin.By != "" {
		text += " by " + v.revisions.pin.By
	}
	if v.revisions.pin.Reason != "" {
		text += " (" + v.revisions.pin.Reason + ")"
	}
	if v.revisions.excludedByPin != "" {
		text += ", " + v.revisions.excludedByPin + " is not applied"
	}
	return text + ": "
}

// currentRevisionText names the revision that stays in force while a newer one cannot be applied.
func (v conditionInput) currentRevisionText() string {
	switch {
	case v.lastSync.maintainErr != nil:
		return "; " + v.notMaintainedText()
	case v.revisions.partial != "" && v.revisions.applied == "":
		return "; " + v.revisions.partial + " stays applied in part"
	case v.revisions.applied == "":
		return ""
	case v.revisions.partial != "":
		return "; " + v.revisions.partial + " stays applied in part, on top of " + v.revisions.applied
	}
	return "; " + v.revisions.applied + " stays applied"
}

// notMaintainedText says that the applied revision is not maintained.
func (v conditionInput) notMaintainedText() string {
	if v.revisions.applied == "" {
		return fmt.Sprintf("no revision has been applied completely yet, and none is maintained now: %s", v.lastSync.maintainErr)
	}
	return fmt.Sprintf("%s was applied last and is not maintained now: %s", v.revisions.applied, v.lastSync.maintainErr)
}

func (v conditionInput) sourceCondition() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.readState.sourceErr != nil:
		return gardencorev1beta1.ConditionFalse, sourceReason(v.readState.sourceErr), v.readState.sourceErr.Error() + v.currentRevisionText()
	case v.revisions.wanted == "":
		return gardencorev1beta1.ConditionUnknown, reasonPending, "the source has not been read yet"
	}
	return gardencorev1beta1.ConditionTrue, reasonFetched, "the source is at " + v.revisions.wanted
}

func (v conditionInput) validCondition() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.readState.validErr != nil:
		return gardencorev1beta1.ConditionFalse, reasonInvalid, v.readState.validErr.Error() + v.currentRevisionText()
	case v.revisions.attempted == "":
		return gardencorev1beta1.ConditionUnknown, reasonPending, "no revision has been read yet"
	case v.readState.isReading:
		return gardencorev1beta1.ConditionUnknown, reasonPending, v.revisions.attempted + " is being read"
	case v.readState.isUnread:
		return gardencorev1beta1.ConditionUnknown, reasonPending, v.revisions.attempted + " could not be fetched or verified, and was not validated" + v.currentRevisionText()
	}
	return gardencorev1beta1.ConditionTrue, reasonValid, v.revisions.attempted + " is valid"
}

func (v conditionInput) appliedCondition() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case len(v.lastSync.problems) > 0:
		return gardencorev1beta1.ConditionFalse, reasonApplyFailed, joinWithLimit(v.lastSync.problems)
	case v.revisions.attempted == "" || v.revisions.attempted != v.revisions.applied:
		message := "no revision has been applied yet"
		if v.revisions.applied != "" {
			message = v.revisions.applied + " is applied, " + v.revisions.attempted + " not yet"
		}
		return gardencorev1beta1.ConditionUnknown, reasonPending, message
	case v.lastSync.maintainErr != nil:
		return gardencorev1beta1.ConditionUnknown, reasonNotMaintained, v.notMaintainedText()
	}
	return gardencorev1beta1.ConditionTrue, reasonApplied, v.revisions.applied + " is applied"
}

// maxShownProblems is the maximum number of problems in a message.
const maxShownProblems = 3

func joinWithLimit(problems []string) string {
	if len(problems) > maxShownProblems {
		problems = append(problems[:maxShownProblems:maxShownProblems], fmt.Sprintf("and %d more", len(problems)-maxShownProblems))
	}
	return strings.Join(problems, "; ")
}

func (v conditionInput) readyCondition() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.objectState.isNameTaken:
		// also while it is suspended: this error outlasts the suspension
		return gardencorev1beta1.ConditionFalse, reasonNameTaken, v.objectState.misconfiguration
	case v.objectState.suspendReason != "":
		return gardencorev1beta1.ConditionUnknown, reasonSuspended, v.objectState.suspendReason
	case v.objectState.misconfiguration != "":
		return gardencorev1beta1.ConditionFalse, reasonStalled, v.objectState.misconfiguration + v.currentRevisionText()
	case v.readState.validErr != nil:
		return v.validCondition()
	case len(v.lastSync.problems) > 0:
		status, reason, message := v.appliedCondition()
		if v.lastSync.maintainErr != nil {
			message += "; " + v.notMaintainedText()
		}
		return status, reason, message + v.waitingText()
	case v.readState.sourceErr != nil:
		return v.sourceCondition()
	case v.lastSync.maintainErr != nil:
		return gardencorev1beta1.ConditionFalse, reasonNotMaintained, v.notMaintainedText()
	case v.revisions.applied == "" || v.current.syncProgress != "" && v.revisions.applied != v.revisions.attempted || v.current.awaitsVerdict:
		message := v.current.waitReason
		if v.current.syncProgress != "" {
			message = v.current.syncProgress
		}
		switch {
		case message != "":
		case v.revisions.applied != "":
			message = "it was not ready when the operator restarted, which now checks it again" + v.currentRevisionText()
		default:
			message = "the first sync has not begun yet"
		}
		if message == v.current.waitReason && v.isWaiting() {
			return gardencorev1beta1.ConditionUnknown, reasonWaiting, message
		}
		return gardencorev1beta1.ConditionUnknown, reasonPending, message
	case v.revisions.partial != "":
		return gardencorev1beta1.ConditionFalse, reasonApplyFailed, "the sync of " + v.revisions.partial + " did not complete" + v.currentRevisionText() + v.waitingText()
	case len(v.clusters.drift) > 0:
		return gardencorev1beta1.ConditionFalse, reasonDrift, "the clusters differ from " + v.revisions.applied + ": " + joinWithLimit(v.clusters.drift)
	case len(v.clusters.unhealthy) > 0:
		return gardencorev1beta1.ConditionFalse, reasonUnhealthy, joinWithLimit(v.clusters.unhealthy)
	}
	message, reason := v.revisions.applied+" is applied", reasonApplied
	if v.isWaiting() {
		message, reason = message+v.waitingText(), reasonWaiting
	}
	if v.pending.heldCount > 0 {
		message += "; " + v.pending.heldText
	}
	switch n := len(v.pending.operations) - v.pending.expiredOperations; {
	case n == 1:
		message += "; 1 operation waits to be started"
	case n > 1:
		message += fmt.Sprintf("; %d operations wait to be started", n)
	}
	switch n := v.pending.expiredOperations; {
	case n == 1:
		message += "; 1 operation expired and never runs"
	case n > 1:
		message += fmt.Sprintf("; %d operations expired and never run", n)
	}
	return gardencorev1beta1.ConditionTrue, reason, message
}

// operationsReason returns the reason for operations if expiredOperations of them expired.
func operationsReason(operations []string, ranOut int) string {
	if len(operations) > ranOut {
		return reasonOperationsPending
	}
	return reasonOperationsExpired
}

// isWaiting reports whether something blocks the due sync of a known revision.
func (v conditionInput) isWaiting() bool {
	return v.current.waitReason != "" && v.revisions.wanted != ""
}

// waitingText appends the reason why a sync waits.
func (v conditionInput) waitingText() string {
	if !v.isWaiting() {
		return ""
	}
	return "; " + v.revisions.wanted + ": " + v.current.waitReason
}

// stalledText returns the error that a person has to fix.
func (v conditionInput) stalledText() string {
	switch {
	case v.objectState.suspendReason != "":
		return ""
	case v.objectState.misconfiguration != "":
		// also while the applied revision is read to maintain it
		return v.objectState.misconfiguration
	case v.current.syncProgress != "":
		return ""
	case v.readState.validErr != nil:
		return v.readState.validErr.Error()
	case source.IsPermanent(v.readState.sourceErr):
		return v.readState.sourceErr.Error()
	case len(v.lastSync.problems) > 0 && v.lastSync.isPermanent:
		return joinWithLimit(v.lastSync.problems)
	}
	return ""
}

// reconcilingCondition describes work that needs no person. reasonRetrying means that it failed and
// waits for its retry.
func (v conditionInput) reconcilingCondition() (reason, message string) {
	switch {
	case v.objectState.suspendReason != "":
		return "", ""
	case v.current.isPolling:
		return reasonPolling, "polling the source"
	case v.current.syncProgress != "" && v.current.isApplying:
		return reasonApplying, v.current.syncProgress
	case v.current.syncProgress != "":
		return reasonReconciling, v.current.syncProgress
	case v.current.validationProgress != "":
		return reasonReconciling, v.current.validationProgress
	case len(v.lastSync.problems) > 0 && v.isWaiting():
		return reasonRetrying, "the sync failed" + v.waitingText()
	case len(v.lastSync.problems) > 0:
		return reasonRetrying, "the sync failed, and the operator retries it"
	case v.readState.sourceErr != nil:
		return reasonRetrying, "polling the source again"
	case v.revisions.wanted == "":
		return reasonReconciling, "reading the source"
	case commitOf(v.revisions.wanted) != commitOf(v.revisions.applied) && v.current.waitReason == "":
		return reasonReconciling, v.revisions.wanted + " is applied next"
	}
	return "", ""
}
