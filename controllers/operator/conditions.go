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

// view is what the conditions of a Landscape are made of.
type view struct {
	// wanted, attempted and applied are revisions as people read them; empty while there is none.
	wanted, attempted, applied string
	// misconfigured says what is wrong with the object itself.
	misconfigured string
	// nameTaken says that it is the name.
	nameTaken bool
	sourceErr error
	// unread says that attempted could not be fetched or verified, so that nobody knows whether it is valid.
	unread bool
	// validErr is why wanted cannot be applied.
	validErr error
	// problems of the last sync.
	problems []string
	// permanent problems get no better by trying again.
	permanent bool
	held      int
	// heldWaiting is how much of it waits for an approval.
	heldWaiting int
	// heldText says what is held, operations which ones wait to be taken up.
	heldText   string
	operations []string
	// ranOut is how many of them wait for nothing, because their time was over.
	ranOut int
	// missing says which Landscapes of spec.dependsOn do not exist.
	missing string
	// gardenlets says what gardenlets are waited for; empty for none.
	gardenlets string
	// asking says that the source is asked, because a person wants to know.
	asking bool
	// syncing says how far the sync in progress is; empty for none.
	syncing string
	// applying says that it is at applying a revision, and not at reading one.
	applying bool
	// validating says which revision is validated although it waits; empty for none.
	validating string
	// reading says that attempted is being read: whether it is valid is not known yet.
	reading bool
	// unsettled says that it was not ready when the operator was started anew, which has not come to a result since.
	unsettled bool
	// waiting says what a sync that would be due waits for.
	waiting   string
	suspended string
	unhealthy []string
	// drift is what somebody has changed and cannot be repaired.
	drift []string
	// halfway is the revision of which a sync began and was not completed; empty for none, and while it goes on.
	halfway string
	// unkept is why nothing keeps what is applied.
	unkept error
	pin    *landscapev1alpha1.Pin
	// newer is the revision that is not applied because of the pin.
	newer string
	notes []string
}

// conditions brings those of a Landscape up to date.
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
	if v.held > 0 {
		updates = append(updates, set(landscapev1alpha1.LandscapeHeld, gardencorev1beta1.ConditionTrue, reasonHeld, v.heldText+": see status.held"))
	} else {
		updates = append(updates, set(landscapev1alpha1.LandscapeHeld, gardencorev1beta1.ConditionFalse, reasonNothingHeld, "nothing waits for an approval"))
	}
	if len(v.operations) > 0 {
		updates = append(updates, set(landscapev1alpha1.LandscapeOperationsWaiting, gardencorev1beta1.ConditionTrue, operationsReason(v.operations, v.ranOut), listed(v.operations)))
	}
	if v.gardenlets != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeGardenletsWorking, gardencorev1beta1.ConditionTrue, reasonWorking, v.gardenlets))
	}
	notes := v.notes
	if v.missing != "" {
		updates = append(updates, set(landscapev1alpha1.LandscapeDependenciesMissing, gardencorev1beta1.ConditionTrue, reasonMissing, v.missing))
		if v.waiting == "" { // else it is said by that
			notes = append(notes[:len(notes):len(notes)], v.missing)
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

// pinned begins every message about a landscape that does not follow its source.
func (v view) pinned() string {
	if v.pin == nil {
		return ""
	}
	text := "PINNED to " + v.pin.Revision
	if v.pin.By != "" {
		text += " by " + v.pin.By
	}
	if v.pin.Reason != "" {
		text += " (" + v.pin.Reason + ")"
	}
	if v.newer != "" {
		text += ", " + v.newer + " is not applied"
	}
	return text + ": "
}

// stays says what is in force although something newer cannot be.
func (v view) stays() string {
	switch {
	case v.unkept != nil:
		return "; " + v.notKept()
	case v.halfway != "" && v.applied == "":
		return "; " + v.halfway + " stays applied in part"
	case v.applied == "":
		return ""
	case v.halfway != "":
		return "; " + v.halfway + " stays applied in part, on top of " + v.applied
	}
	return "; " + v.applied + " stays applied"
}

// notKept says that nobody repairs what is applied.
func (v view) notKept() string {
	if v.applied == "" {
		return fmt.Sprintf("no revision was applied completely yet, and nothing is kept now: %s", v.unkept)
	}
	return fmt.Sprintf("%s was applied last, and nothing keeps it now: %s", v.applied, v.unkept)
}

func (v view) source() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.sourceErr != nil:
		return gardencorev1beta1.ConditionFalse, sourceReason(v.sourceErr), v.sourceErr.Error() + v.stays()
	case v.wanted == "":
		return gardencorev1beta1.ConditionUnknown, reasonPending, "the source was not read yet"
	}
	return gardencorev1beta1.ConditionTrue, reasonFetched, "the source is at " + v.wanted
}

func (v view) valid() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.validErr != nil:
		return gardencorev1beta1.ConditionFalse, reasonInvalid, v.validErr.Error() + v.stays()
	case v.attempted == "":
		return gardencorev1beta1.ConditionUnknown, reasonPending, "no revision was read yet"
	case v.reading:
		return gardencorev1beta1.ConditionUnknown, reasonPending, v.attempted + " is being read"
	case v.unread:
		return gardencorev1beta1.ConditionUnknown, reasonPending, v.attempted + " could not be fetched or verified, and was not validated" + v.stays()
	}
	return gardencorev1beta1.ConditionTrue, reasonValid, v.attempted + " is valid"
}

func (v view) isApplied() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case len(v.problems) > 0:
		return gardencorev1beta1.ConditionFalse, reasonApplyFailed, listed(v.problems)
	case v.attempted == "" || v.attempted != v.applied:
		message := "no revision was applied yet"
		if v.applied != "" {
			message = v.applied + " is applied, " + v.attempted + " not yet"
		}
		return gardencorev1beta1.ConditionUnknown, reasonPending, message
	case v.unkept != nil:
		return gardencorev1beta1.ConditionUnknown, reasonNotKept, v.notKept()
	}
	return gardencorev1beta1.ConditionTrue, reasonApplied, v.applied + " is applied"
}

// shownProblems is how many problems a message has.
const shownProblems = 3

func listed(problems []string) string {
	if len(problems) > shownProblems {
		problems = append(problems[:shownProblems:shownProblems], fmt.Sprintf("and %d more", len(problems)-shownProblems))
	}
	return strings.Join(problems, "; ")
}

func (v view) ready() (gardencorev1beta1.ConditionStatus, string, string) {
	switch {
	case v.nameTaken: // also of a suspended one: afterwards it has to be known
		return gardencorev1beta1.ConditionFalse, reasonNameTaken, v.misconfigured
	case v.suspended != "":
		return gardencorev1beta1.ConditionUnknown, reasonSuspended, v.suspended
	case v.misconfigured != "":
		return gardencorev1beta1.ConditionFalse, reasonStalled, v.misconfigured + v.stays()
	case v.validErr != nil:
		return v.valid()
	case len(v.problems) > 0:
		status, reason, message := v.isApplied()
		if v.unkept != nil {
			message += "; " + v.notKept()
		}
		return status, reason, message + v.waitsText()
	case v.sourceErr != nil:
		return v.source()
	case v.unkept != nil:
		return gardencorev1beta1.ConditionFalse, reasonNotKept, v.notKept()
	case v.applied == "" || v.syncing != "" && v.applied != v.attempted || v.unsettled:
		message := v.waiting
		if v.syncing != "" {
			message = v.syncing
		}
		switch {
		case message != "":
		case v.applied != "":
			message = "it was not ready when the operator was started anew, and is looked at again" + v.stays()
		default:
			message = "the first sync has not begun yet"
		}
		if message == v.waiting && v.waits() {
			return gardencorev1beta1.ConditionUnknown, reasonWaiting, message
		}
		return gardencorev1beta1.ConditionUnknown, reasonPending, message
	case v.halfway != "":
		return gardencorev1beta1.ConditionFalse, reasonApplyFailed, "the sync of " + v.halfway + " was not completed" + v.stays() + v.waitsText()
	case len(v.drift) > 0:
		return gardencorev1beta1.ConditionFalse, reasonDrift, "the clusters are not as " + v.applied + " says: " + listed(v.drift)
	case len(v.unhealthy) > 0:
		return gardencorev1beta1.ConditionFalse, reasonUnhealthy, listed(v.unhealthy)
	}
	message, reason := v.applied+" is applied", reasonApplied
	if v.waits() {
		message, reason = message+v.waitsText(), reasonWaiting
	}
	if v.held > 0 {
		message += "; " + v.heldText
	}
	switch n := len(v.operations) - v.ranOut; {
	case n == 1:
		message += "; 1 operation waits to be taken up"
	case n > 1:
		message += fmt.Sprintf("; %d operations wait to be taken up", n)
	}
	switch n := v.ranOut; {
	case n == 1:
		message += "; 1 operation ran out and is never executed"
	case n > 1:
		message += fmt.Sprintf("; %d operations ran out and are never executed", n)
	}
	return gardencorev1beta1.ConditionTrue, reason, message
}

// operationsReason says what is with operations of which so many ran out.
func operationsReason(operations []string, ranOut int) string {
	if len(operations) > ranOut {
		return reasonOperations
	}
	return reasonRanOut
}

// waits tells whether a sync of a revision that is known would be due, and something holds it.
func (v view) waits() bool { return v.waiting != "" && v.wanted != "" }

// waitsText adds to a message what a sync waits for.
func (v view) waitsText() string {
	if !v.waits() {
		return ""
	}
	return "; " + v.wanted + ": " + v.waiting
}

// stalled says what a person has to change before anything gets better.
func (v view) stalled() string {
	switch {
	case v.suspended != "":
		return ""
	case v.misconfigured != "": // also while what is applied is read to be kept
		return v.misconfigured
	case v.syncing != "":
		return ""
	case v.validErr != nil:
		return v.validErr.Error()
	case source.IsPermanent(v.sourceErr):
		return v.sourceErr.Error()
	case len(v.problems) > 0 && v.permanent:
		return listed(v.problems)
	}
	return ""
}

// reconciling says what goes on by itself. With reasonRetrying nothing does at the moment: it went wrong, and is tried again later.
func (v view) reconciling() (reason, message string) {
	switch {
	case v.suspended != "":
		return "", ""
	case v.asking:
		return reasonAsking, "the source is asked"
	case v.syncing != "" && v.applying:
		return reasonApplying, v.syncing
	case v.syncing != "":
		return reasonReconciling, v.syncing
	case v.validating != "":
		return reasonReconciling, v.validating
	case len(v.problems) > 0 && v.waits():
		return reasonRetrying, "the sync failed" + v.waitsText()
	case len(v.problems) > 0:
		return reasonRetrying, "the sync failed and is tried again"
	case v.sourceErr != nil:
		return reasonRetrying, "the source is asked again"
	case v.wanted == "":
		return reasonReconciling, "the source is read"
	case commitOf(v.wanted) != commitOf(v.applied) && v.waiting == "":
		return reasonReconciling, v.wanted + " is to be applied"
	}
	return "", ""
}
