// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
)

// Options configure an Engine. Only Keys have to be set.
type Options struct {
	Keys  Keys
	Clock clock.WithTicker // default: the real clock
	// Protected kinds are never deleted for a recreation.
	Protected []schema.GroupKind
	// TakeoverManagers lists the managers that wrote whole objects before us and hand them over.
	// The first apply takes over their fields.
	TakeoverManagers []TakeoverManager
	// IsSibling reports whether a field manager is this engine under another name, such as that of
	// another class. The set that owns an object now takes over the fields of such managers, as
	// with Former.
	IsSibling func(manager string) bool
	// IsForced selects objects whose fields are taken over from any manager, in addition to sets
	// with Force.
	IsForced func(Ref) bool
	// ForceHint says how a person makes Force select an object; it ends the hint of a Conflict: "…,
	// or force it".
	ForceHint func(Ref) string
	// ExplainItem adds to a plan item the effects of its action beyond the object. old and new are
	// the object before and after; it is nil if it does not exist or is unknown.
	ExplainItem func(item *change.Item, old, new *unstructured.Unstructured)
	// Parallel is the number of objects processed concurrently in one run; the default is 16.
	Parallel int
}

// Engine applies sets. One engine serves all clusters of a process; it is safe for concurrent use.
// The caller must not start two runs of the same set at a time.
type Engine struct {
	keys             Keys
	clock            clock.WithTicker
	protected        map[schema.GroupKind]bool
	takeoverManagers []TakeoverManager
	isSibling        func(string) bool
	isForced         func(Ref) bool
	forceHint        func(Ref) string
	explainItem      func(item *change.Item, old, new *unstructured.Unstructured)
	parallel         int
	inFlight         *inFlightCreates
	tracker          *driftTracker
}

// NewEngine makes an engine.
func NewEngine(o Options) *Engine {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.IsSibling == nil {
		o.IsSibling = func(string) bool { return false }
	}
	if o.IsForced == nil {
		o.IsForced = func(Ref) bool { return false }
	}
	if o.ForceHint == nil {
		o.ForceHint = func(Ref) string { return "force" }
	}
	if o.ExplainItem == nil {
		o.ExplainItem = func(*change.Item, *unstructured.Unstructured, *unstructured.Unstructured) {}
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	e := &Engine{keys: o.Keys, clock: o.Clock, protected: map[schema.GroupKind]bool{}, takeoverManagers: o.TakeoverManagers, isSibling: o.IsSibling,
		isForced: o.IsForced, forceHint: o.ForceHint, explainItem: o.ExplainItem, parallel: o.Parallel, tracker: newTracker(), inFlight: &inFlightCreates{}}
	for _, gk := range o.Protected {
		e.protected[gk] = true
	}
	return e
}

// ExpectLateRequests announces that requests of a previous engine, such as a leader that lost its
// lease, may still arrive for a while. Objects that it was about to create stay in the inventory
// for d.
func (e *Engine) ExpectLateRequests(d time.Duration) { e.inFlight.begin(e.clock, d) }

// ApplyOptions configure one run of Apply or Plan.
type ApplyOptions struct {
	AllowEmpty bool // prune although the set is empty
	PruneCRDs  bool // prune CustomResourceDefinitions too; by default they stay until Delete
	NoPrune    bool
	// ApprovePrune is the gate: it gets all objects to be deleted and returns those that must stay
	// for now.
	ApprovePrune func([]Entry) []HeldObject
	// HoldRecreate returns why an object must not be recreated now, or nil. It gets the entry of
	// the inventory.
	HoldRecreate func(Entry) *change.Reason
	// NoDelete starts no deletions. Objects that left the set stay, with the reasons why they are
	// held; entries of deleted objects are removed.
	NoDelete bool
	// Repair restores only applied objects. It skips objects that were never applied or are
	// declared differently now, prunes nothing, and deletes an object only to recreate it.
	Repair bool
	// IsDeclaredElsewhere reports whether another set declares an object that left this one. The
	// object is then not deleted.
	IsDeclaredElsewhere func(Ref) bool
	// IsDeclaredBy reports whether another set, given by the origin annotation of an object, still
	// declares it. If so, the object stays with that set, and the error names it. From an unknown
	// set an object is taken only if field managers allow that. Without IsDeclaredBy the first
	// apply takes it from any set.
	IsDeclaredBy func(origin string, ref Ref) (declared, known bool)
	// IsReleasedBy reports whether another set, given by the origin annotation of an object, is
	// known and no longer has the object in its inventory. A set that has it in its inventory and
	// does not declare it then deletes it, even without having applied it. Without IsReleasedBy it
	// belongs to the annotated set.
	IsReleasedBy func(origin string, ref Ref) bool
	// CompleteDeclaration fills in fields that a declaration leaves open, before the object is
	// sent; live is nil for a new object. It returns declared itself if nothing is missing, and
	// never modifies it. The added fields are applied like declared ones, but do not count as a
	// changed declaration.
	CompleteDeclaration func(declared, live *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Admit may refuse the change of an existing object; next is the server's answer to a dry run.
	// The object then stays unchanged and fails with that error. Admit costs a dry run for each
	// object that changes.
	Admit func(ctx context.Context, live, next *unstructured.Unstructured) error
	// OnDryRun gets, in a plan, the server's dry-run answer for each object that Apply would send.
	// It may be called concurrently and must not modify the object.
	OnDryRun func(ref Ref, next *unstructured.Unstructured)
	// ReadyTimeout limits the wait for an established CustomResourceDefinition, an available
	// APIService, or the first answer of a new webhook; the default is 60 s
	ReadyTimeout time.Duration
	// DeleteTimeout limits the wait for deleted objects, in all of prune or in one recreation; the
	// default is 10 s.
	DeleteTimeout time.Duration
	// NoWait ends the run without waiting for deletions, which are reported as Deleting; the caller
	// runs again later. For DeleteTimeout after its own deletion, an object then blocks the
	// deletions that follow it.
	NoWait   bool
	OnObject func(ObjectResult)
}

// DeleteOptions configure one run of Delete or PlanDelete.
type DeleteOptions struct {
	// Approve is the gate: it gets all objects to be deleted and returns those that must stay for
	// now.
	Approve  func([]Entry) []HeldObject
	KeepCRDs bool
	// Timeout limits the deletion of the objects of one phase before the next phase begins; the
	// default is 30 s.
	Timeout             time.Duration
	NoWait              bool // as in ApplyOptions
	IsDeclaredElsewhere func(Ref) bool
	OnObject            func(ObjectResult)
}

// HeldObject is an object whose deletion the gate holds.
type HeldObject struct {
	Ref    Ref           `json:"object"`
	Reason change.Reason `json:"why"`
	// ApprovalID is the id that approves the deletion; it is empty if no approval is possible.
	ApprovalID string `json:"approval,omitempty"`
}

// MarshalJSON adds the reason as text.
func (h HeldObject) MarshalJSON() ([]byte, error) {
	type fields HeldObject
	return printable.JSON(struct {
		fields
		Text string `json:"reason"`
	}{fields(h), h.Reason.String()})
}
