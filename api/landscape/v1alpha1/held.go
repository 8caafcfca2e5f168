package v1alpha1

import "fmt"

// HeldCode says for what an object is held.
type HeldCode string

// Codes of a HeldReason.
const (
	// HeldEveryDeletion: the limit of the cluster is zero.
	HeldEveryDeletion HeldCode = "EveryDeletion"
	// HeldTooManyDeletions: one run would delete more objects of the cluster than its limit.
	HeldTooManyDeletions HeldCode = "TooManyDeletions"
	// HeldTooLargeShare: one run would delete a larger share of the objects of the cluster than its limit.
	HeldTooLargeShare HeldCode = "TooLargeShare"
	// HeldProtectedKind: objects of the kind are never deleted without an approval.
	HeldProtectedKind HeldCode = "ProtectedKind"
	// HeldNotReviewed: the difference that people have reviewed does not show it.
	HeldNotReviewed HeldCode = "NotReviewed"
	// HeldMayHaveMoved: another landscape may declare the object now, and has not been synced since.
	HeldMayHaveMoved HeldCode = "MayHaveMoved"
	// HeldMovedUnreviewed is HeldMayHaveMoved of an object that no review has shown either.
	HeldMovedUnreviewed HeldCode = "MovedUnreviewed"
	// HeldUnconfirmed: a Garden, Seed, Shoot or Project whose deletion is not confirmed.
	HeldUnconfirmed HeldCode = "Unconfirmed"
	// HeldReferred: an object that is held refers to it.
	HeldReferred HeldCode = "Referred"
	// HeldStillRead: a seed may be reading it.
	HeldStillRead HeldCode = "StillRead"
	// HeldUnknown: whether it may be deleted could not be found out.
	HeldUnknown HeldCode = "Unknown"
	// HeldForWriter: it is for the writer of its ManagedResource to delete it.
	HeldForWriter HeldCode = "ForWriter"
	// HeldReport: the report of a seed says less than all.
	HeldReport HeldCode = "Report"
)

// HeldReason is why an object is not deleted or recreated now. The fields of the code are set, the others are not.
type HeldReason struct {
	// For what it is held.
	// +optional
	Code HeldCode `json:"code,omitempty"`
	// Cluster of the limit.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Kind that is protected.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Number of deletions in the run.
	// +optional
	Count int `json:"count,omitempty"`
	// Number of objects of the cluster, for a share.
	// +optional
	Total int `json:"total,omitempty"`
	// The limit, as a number or in percent.
	// +optional
	Limit int `json:"limit,omitempty"`
	// It is held since an earlier run, for this reason.
	// +optional
	Earlier bool `json:"earlier,omitempty"`
	// Further words for people; for codes without numbers the whole text.
	// +optional
	Detail string `json:"detail,omitempty"`
}

// IsZero reports whether nothing is held.
func (r HeldReason) IsZero() bool { return r == HeldReason{} }

// HasMoved reports whether the object is held because other landscapes have to be synced first.
func (r HeldReason) HasMoved() bool {
	return r.Code == HeldMayHaveMoved || r.Code == HeldMovedUnreviewed
}

// String is the reason for people.
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
	case HeldMayHaveMoved:
		text = "it may have moved to another landscape: it is deleted when these have been synced and do not declare it: " + r.Detail
	case HeldMovedUnreviewed:
		text = "it may have moved to another landscape: no review has shown that it goes, so that it needs an approval, also when these have been " +
			"synced and do not declare it: " + r.Detail
	}
	if r.Earlier {
		return "it is held since before: " + text
	}
	return text
}
