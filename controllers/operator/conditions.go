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
	// wanted, attempted and applied are revisions as people read them; empty while there is none.
	wanted, attempted, applied string
	// halfway is the revision of which a sync began and was not completed; empty for none, and
	// while it goes on.
	halfway string
	pin     *landscapev1alpha1.Pin
	// newer is the revision that is not applied because of the pin.
	newer string
}

// objectShown is what the object itself says.
type objectShown struct {
	// misconfigured says what is wrong with the object itself.
	misconfigured string
	// nameTaken says that it is the name.
	nameTaken bool
	// missing says which Landscapes of spec.dependsOn do not exist.
	missing   string
	suspended string
}

// readShown is how the source and its files were found.
type readShown struct {
	sourceErr error
	// unread says that attempted could not be fetched or verified, so that nobody knows whether it
	// is valid.
	unread bool
	// validErr is why wanted cannot be applied.
	validErr error
	// reading says that attempted is being read: whether it is valid is not known yet.
	reading bool
}

// lastShown is how the last sync ended.
type lastShown struct {
	// problems of the last sync.
	problems []string
	// permanent problems get no better by trying again.
	permanent bool
	// unkept is why nothing keeps what is applied.
	unkept error
	notes  []string
}

// withheld is what waits for an approval or for its turn.
type withheld struct {
	held int
	// heldWaiting is how much of it waits for an approval.
	heldWaiting int
	// heldText says what is held, operations which ones wait to be taken up.
	heldText   string
	operations []string
	// ranOut is how many of them wait for nothing, because their time was over.
	ranOut int
}

// goingOn is what is under way, and what is waited for.
type goingOn struct {
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
	// unsettled says that it was not ready when the operator was started anew, which has not come
	// to a result since.
	unsettled bool
	// waiting says what a sync that would be due waits for.
	waiting string
}

// foundShown is how the clusters are.
type foundShown struct {
	unhealthy []string
	// drift is what somebody has changed and cannot be repaired.
	drift []string
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
		if v.now.waiting == "" { // else it is said by that
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

// pinned begins every message about a landscape that does not follow its source.
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

// stays says what is in force although something newer cannot be.
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

// notKept says that nobody repairs what is applied.
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
	case v.object.nameTaken: // also of a suspended one: afterwards it has to be known
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

// operationsReason says what is with operations of which so many ran out.
func operationsReason(operations []string, ranOut int) string {
	if len(operations) > ranOut {
		return reasonOperations
	}
	return reasonRanOut
}

// waits tells whether a sync of a revision that is known would be due, and something holds it.
func (v view) waits() bool { return v.now.waiting != "" && v.is.wanted != "" }

// waitsText adds to a message what a sync waits for.
func (v view) waitsText() string {
	if !v.waits() {
		return ""
	}
	return "; " + v.is.wanted + ": " + v.now.waiting
}

// stalled says what a person has to change before anything gets better.
func (v view) stalled() string {
	switch {
	case v.object.suspended != "":
		return ""
	case v.object.misconfigured != "": // also while what is applied is read to be kept
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

// reconciling says what goes on by itself. With reasonRetrying nothing does at the moment: it went
// wrong, and is tried again later.
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
