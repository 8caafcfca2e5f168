package apply

import (
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// Action is what was done with an object.
type Action string

// The actions. An object that is Deleting was told to go and waits for its finalizers.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Adopted    Action = "adopted" // existed before and was not ours
	Recreated  Action = "recreated"
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
	Gone       Action = "gone" // was to be deleted, and was not there any more
	Deleting   Action = "deleting"
	Kept       Action = "kept"
	HandedOver Action = "handed-over"
	// in the inventory, but the object does not show that it is ours
	LeftAlone Action = "left-alone"
	HeldBack  Action = "held"
	Ignored   Action = "ignored"
	Skipped   Action = "skipped"
	Failed    Action = "failed"
)

// ObjectResult is the outcome for one object.
type ObjectResult struct {
	Ref     Ref    `json:"object"`
	Action  Action `json:"action"`
	Message string `json:"message,omitempty"`
	// Kept are fields that are declared otherwise and stay as they are, because they cannot change
	// on a live object.
	Kept []string `json:"kept,omitempty"`
	// Dropped are declared fields that the API server accepted and that the live object does not
	// have, such as those of a closed feature gate.
	Dropped []string `json:"dropped,omitempty"`
	// HandedOver are declared fields that are left as others set them, see Set.Yields.
	HandedOver []change.HandedOver `json:"handedOver,omitempty"`
	// TakenBack are fields that others had changed and that are ours again, each with the manager,
	// see Set.TakeBackFrom.
	TakenBack []string     `json:"takenBack,omitempty"`
	Err       *ObjectError `json:"error,omitempty"`
	// Cluster of the object, which the result of the whole says once for all.
	Cluster string `json:"-"`
	// Waits says of an object that is to go that it was not told to yet: something else has to go
	// before, or the run ended.
	Waits bool `json:"-"`
	// Told says that this run told the object to go, the one before of one that is recreated,
	// whatever became of it then: a Deleting or a Failed one is still on its way. What is not sure
	// to stay away, because an instance before this one may still make it, does not count.
	Told bool `json:"-"`
}

// Result is the outcome of Apply or Delete: applied objects in order of application, then
// deletions.
type Result struct {
	Cluster string         `json:"cluster"`
	Set     string         `json:"set"`
	Objects []ObjectResult `json:"objects"`
	// Complete means that nothing failed, was skipped or held, and nothing is still being deleted.
	Complete bool `json:"complete"`
	// Digest identifies the desired objects that were applied.
	Digest string `json:"digest,omitempty"`
}

// Count is the number of objects with an action.
func (r *Result) Count(a Action) int {
	n := 0
	for _, o := range r.Objects {
		if o.Action == a {
			n++
		}
	}
	return n
}

// Changed tells whether anything was written to the cluster.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.Objects, func(o ObjectResult) bool {
		return slices.Contains([]Action{Created, Configured, Adopted, Recreated, Deleted, Deleting}, o.Action)
	})
}

// Pending are the objects that are held or still being deleted.
func (r *Result) Pending() []ObjectResult {
	var out []ObjectResult
	for _, o := range r.Objects {
		if o.Action == Deleting || o.Action == HeldBack {
			out = append(out, o)
		}
	}
	return out
}

// planned are the actions that a plan announces; what is not here is counted as unchanged.
var planned = map[Action]change.Action{Created: change.Create, Configured: change.Change, Adopted: change.Adopt,
	Recreated: change.Recreate, Deleted: change.Delete, Deleting: change.Delete, Kept: change.Keep, HandedOver: change.Keep,
	LeftAlone: change.Keep,
	HeldBack:  change.Hold, Skipped: change.Fail, Failed: change.Fail}

// plan is what the outcomes of a dry run announce.
func (r *run) plan() (change.Plan, error) {
	var p change.Plan
	for _, o := range r.ordered() {
		p.HandedOver = append(p.HandedOver, o.handed...)
		item := change.Item{Cluster: r.c.name, Bundle: r.set.Name, Object: o.ref, Action: planned[o.action], Fields: o.fields,
			PutBack: o.putBack, Reason: o.message, Origin: r.set.Sources[o.ref]}
		if o.err != nil {
			item.Reason = o.err.Error()
		}
		if _, ours := r.entries[keyOf(o.ref)]; item.Action == change.Keep && ours && len(o.kept) == 0 {
			item.Action = "" // it stays where it is for now, in the inventory too
		}
		if item.Action == "" {
			p.Unchanged++
			continue
		}
		r.e.explain(&item, o.old, o.new)
		p.Items = append(p.Items, item)
	}
	p.Sort()
	return p, r.errors()
}
