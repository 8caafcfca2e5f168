package apply

import "slices"

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
	Deleting   Action = "deleting"
	Kept       Action = "kept"
	HandedOver Action = "handed-over"
	HeldBack   Action = "held"
	Ignored    Action = "ignored"
	Skipped    Action = "skipped"
	Failed     Action = "failed"
)

// ObjectResult is the outcome for one object.
type ObjectResult struct {
	Ref     Ref          `json:"object"`
	Action  Action       `json:"action"`
	Message string       `json:"message,omitempty"`
	Err     *ObjectError `json:"error,omitempty"`
}

// Result is the outcome of Apply or Delete: applied objects in order of application, then deletions.
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

// PlanAction is what Apply or Delete would do with an object.
type PlanAction string

// The plan actions and the actions they announce.
const (
	PlanCreate    PlanAction = "create"
	PlanChange    PlanAction = "change"
	PlanAdopt     PlanAction = "adopt"
	PlanRecreate  PlanAction = "recreate"
	PlanUnchanged PlanAction = "unchanged"
	PlanDelete    PlanAction = "delete"
	PlanKeep      PlanAction = "keep"
	PlanHandOver  PlanAction = "hand-over"
	PlanHold      PlanAction = "hold"
	PlanIgnore    PlanAction = "ignore"
	PlanSkip      PlanAction = "skip"
	PlanFail      PlanAction = "fail"
)

var planned = map[Action]PlanAction{Created: PlanCreate, Configured: PlanChange, Adopted: PlanAdopt,
	Recreated: PlanRecreate, Unchanged: PlanUnchanged, Deleted: PlanDelete, Deleting: PlanDelete, Kept: PlanKeep,
	HandedOver: PlanHandOver, HeldBack: PlanHold, Ignored: PlanIgnore, Skipped: PlanSkip, Failed: PlanFail}

// Change is what would happen to one object.
type Change struct {
	Ref     Ref           `json:"object"`
	Action  PlanAction    `json:"action"`
	Fields  []FieldChange `json:"fields,omitempty"`
	Message string        `json:"message,omitempty"`
	Err     *ObjectError  `json:"error,omitempty"`
}

// Changes are what Apply or Delete would do, in that order.
type Changes struct {
	Cluster string   `json:"cluster"`
	Set     string   `json:"set"`
	Items   []Change `json:"items"`
}

// Any tells whether anything would change.
func (c *Changes) Any() bool {
	return slices.ContainsFunc(c.Items, func(i Change) bool {
		return slices.Contains([]PlanAction{PlanCreate, PlanChange, PlanAdopt, PlanRecreate, PlanDelete}, i.Action)
	})
}

// FieldChange is a field that differs. Values of Secrets are never in it.
type FieldChange struct {
	Path    string `json:"path"` // spec.containers[name="app"].image
	Old     any    `json:"old,omitempty"`
	New     any    `json:"new,omitempty"`
	Hidden  bool   `json:"hidden,omitempty"`  // the values are withheld
	Manager string `json:"manager,omitempty"` // drift: who owns the field now
}
