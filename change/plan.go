package change

import (
	"cmp"
	"slices"
)

// Action is what happens to one object.
type Action string

// Actions. Unchanged objects are counted, not listed.
const (
	Create   Action = "create"
	Change   Action = "change"
	Recreate Action = "recreate"
	Delete   Action = "delete"
	Adopt    Action = "adopt"
	// Keep is an object that is no longer managed, and stays in the cluster.
	Keep Action = "keep"
	// Hold is a deletion or recreation that the gate keeps back.
	Hold Action = "hold"
	// Fail is an object whose change could not be computed.
	Fail Action = "fail"
)

// Item is one object that changes.
type Item struct {
	Cluster   string `json:"cluster"`
	Owner     string `json:"owner,omitempty"`
	Component string `json:"component,omitempty"`
	Bundle    string `json:"bundle"`
	Object    Ref    `json:"object"`
	Action    Action `json:"action"`
	// Former is the name that the object had, where its name is a hash of its content.
	Former string `json:"former,omitempty"`
	// Fields that differ, for change and recreate.
	Fields []Field `json:"fields,omitempty"`
	// PutBack are fields of the pods that go with what others hand over, and that admission
	// webhooks put back: they stay only as long as these are asked.
	PutBack []Field `json:"putBack,omitempty"`
	// Reason says why, where the action alone does not.
	Reason string `json:"reason,omitempty"`
	// Approval is the id that lets a held deletion or recreation of this one object pass.
	Approval string `json:"approval,omitempty"`
	// Consequences say what the change does beyond the object itself.
	Consequences []string `json:"consequences,omitempty"`
	// Pools are the worker pools whose nodes it touches, for Workers and Shoots.
	Pools []PoolChange `json:"pools,omitempty"`
	// Origin is the file (and line) the new object comes from.
	Origin string `json:"origin,omitempty"`
}

// Field is one difference inside an object.
type Field struct {
	// Path as in spec.template.spec.containers[name=app].image
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
	// Hidden says that the values differ and may not be shown.
	Hidden bool `json:"hidden,omitempty"`
	// Encrypted says that a hidden value was not decrypted: what differs is the ciphertext.
	Encrypted bool `json:"encrypted,omitempty"`
	// OldHash and NewHash stand for hidden values: equal values have equal ones within a diff, and
	// within all that were made with the same key (see Masking). Empty where there is no value, and
	// where there is no key.
	OldHash string `json:"oldHash,omitempty"`
	NewHash string `json:"newHash,omitempty"`
	// Manager owns the field now, where that is known and not us.
	Manager string `json:"manager,omitempty"`
}

// Plan is everything that would change, in the order it is printed. The diff of two revisions, the
// dry run against live clusters and the deletion gate speak of this one value.
type Plan struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Notes say what a reader has to know of the comparison itself.
	Notes []string `json:"notes,omitempty"`
	// Settings is how many settings of landscape.yaml differ that no object shows; notes say which.
	Settings int `json:"settings,omitempty"`
	// Uncompared says that there was nothing to compare with, so that no items mean nothing; a note
	// says why.
	Uncompared bool `json:"uncompared,omitempty"`
	// HandedOver are declared fields that are left to controllers: no differences.
	HandedOver []HandedOver `json:"handedOver,omitempty"`
	Items      []Item       `json:"items"`
	// Unchanged counts the objects of bundles and declarations that stay as they are, not the
	// ManagedResources that carry them.
	Unchanged int `json:"unchanged"`
	// LeftOut counts Secrets that were not compared because no key opens them.
	LeftOut int `json:"leftOut,omitempty"`
	// Unreached are the owners of which nothing was compared, because nothing of them can differ.
	Unreached Unreached `json:"unreached,omitzero"`
	Summary   Summary   `json:"summary"`
}

// Summary counts the items by action.
type Summary struct {
	Create   int `json:"create"`
	Change   int `json:"change"`
	Recreate int `json:"recreate"`
	Delete   int `json:"delete"`
	Adopt    int `json:"adopt"`
	Keep     int `json:"keep"`
	Hold     int `json:"hold"`
	Fail     int `json:"fail"`
}

// Empty says that nothing would change.
func (p Plan) Empty() bool { return len(p.Items) == 0 }

// Sort orders the items by cluster, owner, component, bundle and object, and counts them.
func (p *Plan) Sort() {
	slices.SortStableFunc(p.Items, func(a, b Item) int {
		return cmp.Or(
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Bundle, b.Bundle),
			cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.APIVersion, b.Object.APIVersion),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	p.Summary = Summarize(p.Items)
}

// Summarize counts items by their action.
func Summarize(items []Item) Summary {
	var s Summary
	for _, item := range items {
		if n := s.Of(item.Action); n != nil {
			*n++
		}
	}
	return s
}

// Of counts an action; nil for an action that has none.
func (s *Summary) Of(a Action) *int {
	return map[Action]*int{Create: &s.Create, Change: &s.Change, Recreate: &s.Recreate, Delete: &s.Delete,
		Adopt: &s.Adopt, Keep: &s.Keep, Hold: &s.Hold, Fail: &s.Fail}[a]
}

// Add adds up two plans.
func (s *Summary) Add(o Summary) {
	s.Create += o.Create
	s.Change += o.Change
	s.Recreate += o.Recreate
	s.Delete += o.Delete
	s.Adopt += o.Adopt
	s.Keep += o.Keep
	s.Hold += o.Hold
	s.Fail += o.Fail
}

// Unreached counts the owners that a comparison did not render, by kind: what they are rendered
// from is the same on both sides. Their objects are in no other number of a plan.
type Unreached struct {
	Gardens int `json:"gardens,omitempty"`
	Seeds   int `json:"seeds,omitempty"`
	Shoots  int `json:"shoots,omitempty"`
}

// Add adds up two comparisons.
func (u *Unreached) Add(o Unreached) {
	u.Gardens += o.Gardens
	u.Seeds += o.Seeds
	u.Shoots += o.Shoots
}
