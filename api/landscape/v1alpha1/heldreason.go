// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// HeldCode is the reason why an object is held.
type HeldCode string

// Codes of a HeldReason.
const (
	// HeldEveryDeletion means that the limit of the cluster is zero.
	HeldEveryDeletion HeldCode = "EveryDeletion"
	// HeldTooManyDeletions means that one run would delete more objects of the cluster than its
	// limit.
	HeldTooManyDeletions HeldCode = "TooManyDeletions"
	// HeldTooLargeShare means that one run would delete a larger share of the cluster's objects
	// than its limit.
	HeldTooLargeShare HeldCode = "TooLargeShare"
	// HeldProtectedKind means that every deletion of an object of this kind needs an approval.
	HeldProtectedKind HeldCode = "ProtectedKind"
	// HeldNotReviewed means that the reviewed diff does not show the deletion.
	HeldNotReviewed HeldCode = "NotReviewed"
	// HeldPossibleMove means that another landscape, not synced since, may declare the object now.
	HeldPossibleMove HeldCode = "MayHaveMoved"
	// HeldPossibleMoveUnreviewed is HeldPossibleMove for an object that no review has shown either.
	HeldPossibleMoveUnreviewed HeldCode = "MovedUnreviewed"
	// HeldUnconfirmedDeletion means that the deletion of a Garden, Seed, Shoot or Project is not
	// confirmed.
	HeldUnconfirmedDeletion HeldCode = "Unconfirmed"
	// HeldByReference means that a held object refers to this one.
	HeldByReference HeldCode = "Referred"
	// HeldReadBySeed means that a seed may be reading the object.
	HeldReadBySeed HeldCode = "StillRead"
	// HeldUndecidable means that Pergola cannot find out whether the object may be deleted.
	HeldUndecidable HeldCode = "Unknown"
	// HeldForManagedResourceWriter means that the writer of the object's ManagedResource has to
	// delete it.
	HeldForManagedResourceWriter HeldCode = "ForWriter"
	// HeldIncompleteReport means that the report of a seed is incomplete.
	HeldIncompleteReport HeldCode = "Report"
)

// HeldReason is the reason why an object is not deleted or recreated now. Only the fields of its
// code are set.
type HeldReason struct {
	// Code of the reason.
	// +optional
	Code HeldCode `json:"code,omitempty"`
	// Cluster that the limit applies to.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Protected kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Number of deletions in the run.
	// +optional
	Count int `json:"count,omitempty"`
	// Number of objects of the cluster, if the limit is a share.
	// +optional
	Total int `json:"total,omitempty"`
	// Limit, as a number or in percent.
	// +optional
	Limit int `json:"limit,omitempty"`
	// True if the object has been held for this reason since an earlier run.
	// +optional
	Earlier bool `json:"earlier,omitempty"`
	// Details for people; the whole text for codes without numbers.
	// +optional
	Detail string `json:"detail,omitempty"`
}

// IsZero reports whether the object is not held.
func (r HeldReason) IsZero() bool { return r == HeldReason{} }

// IsMoveSuspected reports whether other landscapes must be synced first, because one may declare
// the object now.
func (r HeldReason) IsMoveSuspected() bool {
	return r.Code == HeldPossibleMove || r.Code == HeldPossibleMoveUnreviewed
}

// String returns the reason for people.
func (r HeldReason) String() string {
	text := r.Detail
	switch r.Code {
	case HeldEveryDeletion:
		text = "every deletion on cluster " + r.Cluster + " needs approval"
	case HeldTooManyDeletions:
		text = fmt.Sprintf("%d deletions on cluster %s are more than the %d allowed in one run", r.Count, r.Cluster, r.Limit)
	case HeldTooLargeShare:
		text = fmt.Sprintf("%d of %d objects on cluster %s are more than the %d%% allowed in one run", r.Count, r.Total, r.Cluster, r.Limit)
	case HeldProtectedKind:
		text = "kind " + r.Kind + " is protected"
	case HeldNotReviewed:
		text = "it is not in the reviewed difference"
	case HeldPossibleMove:
		text = "it may have moved to another landscape; it is deleted once these are synced and do not declare it: " + r.Detail
	case HeldPossibleMoveUnreviewed:
		text = "it may have moved to another landscape, and no review has shown its deletion, so it needs an approval " +
			"even after these are synced: " + r.Detail
	}
	if r.Earlier {
		return "it is still held: " + text
	}
	return text
}
