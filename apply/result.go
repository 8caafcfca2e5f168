// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// Action is the action on an object.
type Action string

// The actions. Deleting means that the deletion was requested and waits for finalizers.
const (
	Created         Action = "created"
	Configured      Action = "configured"
	Adopted         Action = "adopted" // existed before and was not ours
	Recreated       Action = "recreated"
	Unchanged       Action = "unchanged"
	Deleted         Action = "deleted"
	AlreadyDeleted  Action = "gone" // had to be deleted, but no longer existed
	Deleting        Action = "deleting"
	Retained        Action = "kept"
	MovedToOtherSet Action = "handed-over"
	// NotOwned means that the object is in the inventory, but does not show that it is ours
	NotOwned Action = "left-alone"
	HeldBack Action = "held"
	Ignored  Action = "ignored"
	Skipped  Action = "skipped"
	Failed   Action = "failed"
)

// ObjectResult is the outcome for one object.
type ObjectResult struct {
	Ref     Ref    `json:"object"`
	Action  Action `json:"action"`
	Message string `json:"message,omitempty"`
	// ImmutableFields are fields that are declared differently and cannot change on a live object.
	ImmutableFields []string `json:"kept,omitempty"`
	// Dropped are declared fields that the API server accepted and the live object lacks, such as
	// those of a disabled feature gate.
	Dropped []string `json:"dropped,omitempty"`
	// HandedOver are declared fields that other managers own now; see Set.Yields.
	HandedOver []change.HandedOver `json:"handedOver,omitempty"`
	// TakenBack are fields that others changed and that are ours again, each with the manager; see
	// Set.TakeBackFrom.
	TakenBack []string     `json:"takenBack,omitempty"`
	Err       *ObjectError `json:"error,omitempty"`
	// Cluster is the cluster of the object; in JSON, Result.Cluster has it once.
	Cluster string `json:"-"`
	// IsDeletionPending marks an object whose deletion was not requested yet: another object must
	// be deleted first, or the run ended.
	IsDeletionPending bool `json:"-"`
	// DeleteRequested means that this run requested the deletion of the object, or of its
	// predecessor in a recreation. It does not depend on the action: Deleting and Failed deletions
	// may continue. An object that a previous instance may still create does not count.
	DeleteRequested bool `json:"-"`
}

// Result is the outcome of Apply or Delete: applied objects in order of application, then
// deletions.
type Result struct {
	Cluster string         `json:"cluster"`
	Set     string         `json:"set"`
	Objects []ObjectResult `json:"objects"`
	// Complete means that nothing failed, was skipped or held, or is still being deleted.
	Complete bool `json:"complete"`
	// Digest identifies the desired objects that were applied.
	Digest string `json:"digest,omitempty"`
}

// Count returns the number of objects with an action.
func (r *Result) Count(a Action) int {
	n := 0
	for _, o := range r.Objects {
		if o.Action == a {
			n++
		}
	}
	return n
}

// HasChanges reports whether anything was written to the cluster.
func (r *Result) HasChanges() bool {
	return slices.ContainsFunc(r.Objects, func(o ObjectResult) bool {
		return slices.Contains([]Action{Created, Configured, Adopted, Recreated, Deleted, Deleting}, o.Action)
	})
}

// Pending returns the objects that are held or still being deleted.
func (r *Result) Pending() []ObjectResult {
	var out []ObjectResult
	for _, o := range r.Objects {
		if o.Action == Deleting || o.Action == HeldBack {
			out = append(out, o)
		}
	}
	return out
}

// planActions maps actions to those of a plan; other actions count as unchanged.
var planActions = map[Action]change.Action{Created: change.Create, Configured: change.Change, Adopted: change.Adopt,
	Recreated: change.Recreate, Deleted: change.Delete, Deleting: change.Delete, Retained: change.Keep, MovedToOtherSet: change.Keep,
	NotOwned: change.Keep,
	HeldBack: change.Hold, Skipped: change.Fail, Failed: change.Fail}

// plan returns the plan of a dry run.
func (r *setRun) plan() (change.Plan, error) {
	var p change.Plan
	for _, o := range r.sortedOutcomes() {
		p.HandedOver = append(p.HandedOver, o.handedOver...)
		item := change.Item{Cluster: r.cluster.name, Bundle: r.set.Name, Object: o.ref, Action: planActions[o.action], Fields: o.fields,
			WebhookFields: o.restoredByWebhooks, Reason: o.message, Origin: r.set.Sources[o.ref]}
		if o.err != nil {
			item.Reason = o.err.Error()
		}
		if _, ours := r.entries[objectKeyOf(o.ref)]; item.Action == change.Keep && ours && len(o.immutableFields) == 0 {
			item.Action = "" // it stays for now, in the inventory, too
		}
		if item.Action == "" {
			p.Unchanged++
			continue
		}
		r.engine.explainItem(&item, o.old, o.new)
		p.Items = append(p.Items, item)
	}
	p.SortAndCount()
	return p, r.errors()
}
