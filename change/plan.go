// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"slices"
)

// Action is the effect of a change on one object.
type Action string

// Actions. Unchanged objects are counted, not listed.
const (
	Create   Action = "create"
	Change   Action = "change"
	Recreate Action = "recreate"
	Delete   Action = "delete"
	Adopt    Action = "adopt"
	// Keep is an object that is no longer managed and stays in the cluster.
	Keep Action = "keep"
	// Hold is a deletion or recreation that the gate holds.
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
	// PreviousName is the previous name of an object whose name is a hash of its content.
	PreviousName string `json:"former,omitempty"`
	// Fields are the differences, for change and recreate.
	Fields []Field `json:"fields,omitempty"`
	// WebhookFields are fields that drop out of the pods with handed-over fields and that admission
	// webhooks set again. They stay only while these webhooks are called.
	WebhookFields []Field `json:"putBack,omitempty"`
	// Reason explains the action where the action alone does not.
	Reason string `json:"reason,omitempty"`
	// Approval is the id that approves a held deletion or recreation of this one object.
	Approval string `json:"approval,omitempty"`
	// Consequences are the effects of the change beyond the object itself.
	Consequences []string `json:"consequences,omitempty"`
	// Pools are the worker pools whose nodes the change affects, for Workers and Shoots.
	Pools []PoolChange `json:"pools,omitempty"`
	// Origin is the file (and line) of the new object.
	Origin string `json:"origin,omitempty"`
}

// Field is one difference inside an object.
type Field struct {
	// Path is, for example, spec.template.spec.containers[name=app].image.
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
	// Hidden reports whether the values differ but may not be shown.
	Hidden bool `json:"hidden,omitempty"`
	// Encrypted reports whether a hidden value was not decrypted, so the ciphertexts differ.
	Encrypted bool `json:"encrypted,omitempty"`
	// OldHash and NewHash represent hidden values. Equal values have equal hashes within one diff,
	// and in all diffs made with the same key (see Masking). They are empty without a value or a
	// key.
	OldHash string `json:"oldHash,omitempty"`
	NewHash string `json:"newHash,omitempty"`
	// Manager owns the field now, if it is known and not Pergola.
	Manager string `json:"manager,omitempty"`
}

// Plan is everything that would change, in the order it is printed. The diff of two revisions, the
// dry run against live clusters and the deletion gate use this one value.
type Plan struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Notes explain the comparison itself.
	Notes []string `json:"notes,omitempty"`
	// ChangedSettings is the number of changed settings of landscape.yaml that no object shows (see
	// notes).
	ChangedSettings int `json:"settings,omitempty"`
	// HasNoBaseline reports whether there was nothing to compare with, so an empty list of items
	// means nothing. A note gives the reason.
	HasNoBaseline bool `json:"uncompared,omitempty"`
	// HandedOver are declared fields that are left to controllers; they are not differences.
	HandedOver []HandedOver `json:"handedOver,omitempty"`
	Items      []Item       `json:"items"`
	// Unchanged counts unchanged objects of bundles and declarations, not the ManagedResources that
	// carry them.
	Unchanged int `json:"unchanged"`
	// UnreadableSecrets counts Secrets that were not compared because no key decrypts them.
	UnreadableSecrets int `json:"leftOut,omitempty"`
	// Unaffected counts the owners that were not compared because their objects cannot differ.
	Unaffected UnaffectedOwners `json:"unreached,omitzero"`
	Summary    Summary          `json:"summary"`
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

// IsEmpty reports whether nothing would change.
func (p Plan) IsEmpty() bool { return len(p.Items) == 0 }

// SortAndCount orders the items by cluster, owner, component, bundle and object, and counts them.
func (p *Plan) SortAndCount() {
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
		if n := s.Counter(item.Action); n != nil {
			*n++
		}
	}
	return s
}

func (s *Summary) Counter(a Action) *int {
	return map[Action]*int{Create: &s.Create, Change: &s.Change, Recreate: &s.Recreate, Delete: &s.Delete,
		Adopt: &s.Adopt, Keep: &s.Keep, Hold: &s.Hold, Fail: &s.Fail}[a]
}

// Add adds the counts of another plan.
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

// UnaffectedOwners counts, by kind, the owners that a comparison did not render because their
// inputs are the same on both sides. No other number of a plan includes their objects.
type UnaffectedOwners struct {
	Gardens int `json:"gardens,omitempty"`
	Seeds   int `json:"seeds,omitempty"`
	Shoots  int `json:"shoots,omitempty"`
}

// Add adds the counts of another comparison.
func (u *UnaffectedOwners) Add(o UnaffectedOwners) {
	u.Gardens += o.Gardens
	u.Seeds += o.Seeds
	u.Shoots += o.Shoots
}
