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
	reasonApplied        = "Applied"
	reasonApplying       = "Applying"
	reasonAsking         = "Asking"
	reasonApplyFailed    = landscapev1alpha1.ReasonApplyFailed
	reasonDrift          = "DriftNotRepaired"
	reasonFetched        = "Fetched"
	reasonHeld           = "Held"
	reasonInvalid        = "Invalid"
	reasonLapsed         = "ApprovalLapsed"
	reasonMissing        = "NotFound"
	reasonNameTaken      = landscapev1alpha1.ReasonNameTaken
	reasonNotKept        = "NotKept"
	reasonNothingHeld    = "NothingHeld"
	reasonOperations     = "NotTakenUp"
	reasonRanOut         = "RanOut"
	reasonPending        = "Pending"
	reasonReconciling    = "Reconciling"
	reasonRetrying       = "Retrying"
	reasonSourceNotReady = "SourceNotReady"
	reasonStalled        = "Stalled"
	reasonSuspended      = landscapev1alpha1.ReasonSuspended
	reasonUnhealthy      = "Unhealthy"
	reasonValid          = "Valid"
	reasonWorking        = "Working"
	reasonWaiting        = landscapev1alpha1.ReasonWaiting
)

// view is the input of the conditions of a Landscape.
type view struct {
	is       revisionsShown
	object   objectShown
	read     readShown
	last     lastShown
	withheld withheld
	now      goingOn
	found    foundShown
}

// revisionsShown are the revisions of a view.
type revisionsShown struct {
	// wanted, attempted and applied are revisions as people read them; empty if there is none.
	wanted, attempted, applied string
	// halfway is the revision whose sync started and did not complete; empty for none and during
	// the sync.
	halfway string
	pin     *landscapev1alpha1.Pin
	// newer is the revision that the pin excludes.
	newer string
}

// objectShown is the state of the object itself.
type objectShown struct {
	// misconfigured is the error in the object itself.
	misconfigured string
	// nameTaken means that the error is the name.
	nameTaken bool
	// missing lists the Landscapes of spec.dependsOn that do not exist.
	missing   string
	suspended string
}

// readShown is the state of the source and its files.
type readShown struct {
	sourceErr error
	// unread means that attempted could not be fetched or verified, so that its validity is
	// unknown.
	unread bool
	// validErr is why wanted cannot be applied.
	validErr error
	// reading means that attempted is being read, so that its validity is unknown.
	reading bool
}

// lastShown is the result of the last sync.
type lastShown struct {
	// problems are the errors of the last sync.
	problems []string
	// permanent means that a retry does not help.
	permanent bool
	// unkept is why the applied revision is not maintained.
	unkept error
	notes  []string
}

// withheld counts and describes deletions and operations that wait.
type withheld struct {
	held int
	// heldWaiting is how many of the held ones wait for an approval.
	heldWaiting int
	// heldText describes the held deletions, operations the pending operations.
	heldText   string
	operations []string
	// ranOut is how many operations expired.
	ranOut int
}

// goingOn describes work in progress.
type goingOn struct {
	// gardenlets describes the gardenlets that the sync waits for; empty for none.
	gardenlets string
	// asking means that the source is being polled on request.
	asking bool
	// syncing is the progress of the current sync; empty for none.
	syncing string
	// applying means that the sync applies a revision and does not read one.
	applying bool
	// validating names a revision that is validated while it waits; empty for none.
	validating string
	// unsettled means that the Landscape was not ready before the operator restarted, and the new
	// process has no verdict yet.
	unsettled bool
	// waiting is the reason why a due sync waits.
	waiting string
}

// foundShown is the state of the clusters.
type foundShown struct {
	unhealthy []string
	// drift lists changes by others that cannot be repaired.
	drift []string
}

// conditions updates the conditions of a Landscape.
func conditions(b *condition.Builder, old []gardencorev1beta1.Condition, v view) []gardencorev1beta1.Condition {
	set := func(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus, reason, message string) gardencorev1beta1.Condition {
		return b.Update(b.GetOrInit(old, kind), status, reason, message)
	}
	out := condition.Remove(old, landscapev1alpha1.LandscapeReconciling, landscapev1alpha1.LandscapeStalled, landscapev1alpha1.LandscapeOperationsWaiting,
		landscapev1alpha1.LandscapeGardenletsWorking, landscapev1alpha1.LandscapeDependenciesMissing)
	status, reason, message := v.source()
	updates := []gardencorev1beta1.Condition{set(landscapev1alpha1.LandscapeSourceReady, status, reason, message)}
	status, reason, message = v.valid()
	updates = append(updates, set(landscapev1alpha1.LandscapeValid, status, reason, message))
	status, reason, message = v.isApplied()
	updates = append(updates, set(landscapev1alpha1.LandscapeApplied, status, reason, message))
	if v.withheld.held > 0 {
		updates = append(updates, set(landscapev1alpha1.LandscapeHeld, gardencorev1beta1.ConditionTrue, reasonHeld, v.withheld.heldText+": see status.held"))
	} else {
		updates = append(updates, set(landscapev1alpha1.LandscapeHeld, gardencorev1beta1.ConditionFalse, reasonNothingHeld, "nothing waits for an approval"))
	}
	if len(v.withheld.operations) > 0 {
		updates = append(updates, set(landscapev1alpha1.LandscapeOperationsWaiting, gardencorev1beta1.ConditionTrue, operationsReason(v.withheld.operations, v.withheld.ranOut), listed(v.withheld.operations)))
	}
	if v.now.gardenlets != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeGardenletsWorking, gardencorev1beta1.ConditionTrue, reasonWorking, v.now.gardenlets))
	}
	notes := v.last.notes
	if v.object.missing != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeDependenciesMissing, gardencorev1beta1.ConditionTrue, reasonMissing, v.object.missing))
		if v.now.waiting == "" { // else the waiting text says it
			notes = append(notes[:len(notes):len(notes)], v.object.missing)
		}
	}
	status, reason, message = v.ready()
	updates = append(updates, set(landscapev1alpha1.LandscapeReady, status, reason, strings.Join(append([]string{v.pinned() + message}, notes...), "; ")))
	if why := v.stalled(); why != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeStalled, gardencorev1beta1.ConditionTrue, reasonStalled, why))
	} else if reason, why := v.reconciling(); why != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeReconciling, gardencorev1beta1.ConditionTrue, reason, why))
	}
	return condition.Merge(out, updates...)
}

// pinned is the prefix of every message about a pinned Landscape.
func (v view) pinned() string {
	if v.is.pin == nil {
		return ""
	}
	text := "PINNED to " + v.is.pin.Revision
	if v.is.pin.By != "" {
		text += " by " + v.is.pin.By
	}
	if v.is.pin.Reason != "" {
		text += " (" + v.is.pin.Reason + ")"
	}
	if v.is.newer != "" {
		text += ", " + v.is.newer + " is not applied"
	}
	return text + ": "
}

// stays names the revision that stays in force while a newer one cannot be applied.
func (v view) stays() string {
	switch {
	case v.last.unkept != nil:
		return "; " + v.notKept()
	case v.is.halfway != "" && v.is.applied == "":
		return "; " + v.is.halfway + " stays applied in part"
	case v.is.applied == "":
		return ""
	case v.is.halfway != "":
		return "; " + v.is.halfway + " stays applied in part, on top of " + v.is.applied
	}
	return "; " + v.is.applied + " stays applied"
}

// notKept says that the applied revision is not maintained.
func (v view) notKept() string {
	if v.is.applied == "" {
		return fmt.Sprintf("no revision was applied completely yet, and nothing is kept now: %s", v.last.unkept)
	}
	return fmt.Sprintf("%s was applied last, and nothing keeps it now: %s", v.is.applied, v.last.unkept)
}

func (v view) source() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.read.sourceErr != nil:
		return gardencorev1beta1.ConditionFalse, sourceReason(v.read.sourceErr), v.read.sourceErr.Error() + v.stays()
	case v.is.wanted == "":
		return gardencorev1beta1.ConditionUnknown, reasonPending, "the source was not read yet"
	}
	return gardencorev1beta1.ConditionTrue, reasonFetched, "the source is at " + v.is.wanted
}

func (v view) valid() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.read.validErr != nil:
		return gardencorev1beta1.ConditionFalse, reasonInvalid, v.read.validErr.Error() + v.stays()
	case v.is.attempted == "":
		return gardencorev1beta1.ConditionUnknown, reasonPending, "no revision was read yet"
	case v.read.reading:
		return gardencorev1beta1.ConditionUnknown, reasonPending, v.is.attempted + " is being read"
	case v.read.unread:
		return gardencorev1beta1.ConditionUnknown, reasonPending, v.is.attempted + " could not be fetched or verified, and was not validated" + v.stays()
	}
	return gardencorev1beta1.ConditionTrue, reasonValid, v.is.attempted + " is valid"
}

func (v view) isApplied() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case len(v.last.problems) > 0:
		return gardencorev1beta1.ConditionFalse, reasonApplyFailed, listed(v.last.problems)
	case v.is.attempted == "" || v.is.attempted != v.is.applied:
		message := "no revision was applied yet"
		if v.is.applied != "" {
			message = v.is.applied + " is applied, " + v.is.attempted + " not yet"
		}
		return gardencorev1beta1.ConditionUnknown, reasonPending, message
	case v.last.unkept != nil:
		return gardencorev1beta1.ConditionUnknown, reasonNotKept, v.notKept()
	}
	return gardencorev1beta1.ConditionTrue, reasonApplied, v.is.applied + " is applied"
}

// shownProblems is the maximum number of problems in a message.
const shownProblems = 3

func listed(problems []string) string {
	if len(problems) > shownProblems {
		problems = append(problems[:shownProblems:shownProblems], fmt.Sprintf("and %d more", len(problems)-shownProblems))
	}
	return strings.Join(problems, "; ")
}

func (v view) ready() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.object.nameTaken: // also while it is suspended: this error outlasts the suspension
		return gardencorev1beta1.ConditionFalse, reasonNameTaken, v.object.misconfigured
	case v.object.suspended != "":
		return gardencorev1beta1.ConditionUnknown, reasonSuspended, v.object.suspended
	case v.object.misconfigured != "":
		return gardencorev1beta1.ConditionFalse, reasonStalled, v.object.misconfigured + v.stays()
	case v.read.validErr != nil:
		return v.valid()
	case len(v.last.problems) > 0:
		status, reason, message := v.isApplied()
		if v.last.unkept != nil {
			message += "; " + v.notKept()
		}
		return status, reason, message + v.waitsText()
	case v.read.sourceErr != nil:
		return v.source()
	case v.last.unkept != nil:
		return gardencorev1beta1.ConditionFalse, reasonNotKept, v.notKept()
	case v.is.applied == "" || v.now.syncing != "" && v.is.applied != v.is.attempted || v.now.unsettled:
		message := v.now.waiting
		if v.now.syncing != "" {
			message = v.now.syncing
		}
		switch {
		case message != "":
		case v.is.applied != "":
			message = "it was not ready when the operator was started anew, and is looked at again" + v.stays()
		default:
			message = "the first sync has not begun yet"
		}
		if message == v.now.waiting && v.waits() {
			return gardencorev1beta1.ConditionUnknown, reasonWaiting, message
		}
		return gardencorev1beta1.ConditionUnknown, reasonPending, message
	case v.is.halfway != "":
		return gardencorev1beta1.ConditionFalse, reasonApplyFailed, "the sync of " + v.is.halfway + " was not completed" + v.stays() + v.waitsText()
	case len(v.found.drift) > 0:
		return gardencorev1beta1.ConditionFalse, reasonDrift, "the clusters are not as " + v.is.applied + " says: " + listed(v.found.drift)
	case len(v.found.unhealthy) > 0:
		return gardencorev1beta1.ConditionFalse, reasonUnhealthy, listed(v.found.unhealthy)
	}
	message, reason := v.is.applied+" is applied", reasonApplied
	if v.waits() {
		message, reason = message+v.waitsText(), reasonWaiting
	}
	if v.withheld.held > 0 {
		message += "; " + v.withheld.heldText
	}
	switch n := len(v.withheld.operations) - v.withheld.ranOut; {
	case n == 1:
		message += "; 1 operation waits to be taken up"
	case n > 1:
		message += fmt.Sprintf("; %d operations wait to be taken up", n)
	}
	switch n := v.withheld.ranOut; {
	case n == 1:
		message += "; 1 operation ran out and is never executed"
	case n > 1:
		message += fmt.Sprintf("; %d operations ran out and are never executed", n)
	}
	return gardencorev1beta1.ConditionTrue, reason, message
}

// operationsReason returns the reason for operations if ranOut of them expired.
func operationsReason(operations []string, ranOut int) string {
	if len(operations) > ranOut {
		return reasonOperations
	}
	return reasonRanOut
}

// waits reports whether something blocks the due sync of a known revision.
func (v view) waits() bool { return v.now.waiting != "" && v.is.wanted != "" }

// waitsText appends the reason why a sync waits.
func (v view) waitsText() string {
	if !v.waits() {
		return ""
	}
	return "; " + v.is.wanted + ": " + v.now.waiting
}

// stalled returns the error that a person has to fix.
func (v view) stalled() string {
	switch {
	case v.object.suspended != "":
		return ""
	case v.object.misconfigured != "": // also while the applied revision is read to maintain it
		return v.object.misconfigured
	case v.now.syncing != "":
		return ""
	case v.read.validErr != nil:
		return v.read.validErr.Error()
	case source.IsPermanent(v.read.sourceErr):
		return v.read.sourceErr.Error()
	case len(v.last.problems) > 0 && v.last.permanent:
		return listed(v.last.problems)
	}
	return ""
}

// reconciling describes work that needs no person. reasonRetrying means that it failed and waits
// for its retry.
func (v view) reconciling() (reason, message string) {
	switch {
	case v.object.suspended != "":
		return "", ""
	case v.now.asking:
		return reasonAsking, "the source is asked"
	case v.now.syncing != "" && v.now.applying:
		return reasonApplying, v.now.syncing
	case v.now.syncing != "":
		return reasonReconciling, v.now.syncing
	case v.now.validating != "":
		return reasonReconciling, v.now.validating
	case len(v.last.problems) > 0 && v.waits():
		return reasonRetrying, "the sync failed" + v.waitsText()
	case len(v.last.problems) > 0:
		return reasonRetrying, "the sync failed and is tried again"
	case v.read.sourceErr != nil:
		return reasonRetrying, "the source is asked again"
	case v.is.wanted == "":
		return reasonReconciling, "the source is read"
	case commitOf(v.is.wanted) != commitOf(v.is.applied) && v.now.waiting == "":
		return reasonReconciling, v.is.wanted + " is to be applied"
	}
	return "", ""
}
