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
	// Protected kinds are never deleted to be made anew.
	Protected []schema.GroupKind
	// Former lists the managers that wrote whole objects before us and hand them over; what they
	// own becomes ours at the first apply.
	Former []Former
	// Kin tells the field managers that are this engine's under other names, such as those of other
	// classes. What they applied to an object that belongs to a set by now becomes that set's, as
	// with Former.
	Kin func(manager string) bool
	// Force names objects whose fields are taken over from whoever owns them, besides those of sets
	// with Force.
	Force func(Ref) bool
	// ForceHint says how a person makes Force name an object; it ends the hint of a Conflict: "…,
	// or force it".
	ForceHint func(Ref) string
	// Explain adds to an item of a plan what its action does beyond the object: old and new are the
	// object before and after, as far as they exist and are known.
	Explain func(item *change.Item, old, new *unstructured.Unstructured)
	// Parallel is the number of objects worked on at a time in one run; default 16.
	Parallel int
}

// Engine applies sets. One engine serves all clusters of a process; it is safe for concurrent use.
// Two runs of the same set at a time are the caller's mistake.
type Engine struct {
	keys      Keys
	clock     clock.WithTicker
	protected map[schema.GroupKind]bool
	former    []Former
	kin       func(string) bool
	force     func(Ref) bool
	forceHint func(Ref) string
	explain   func(item *change.Item, old, new *unstructured.Unstructured)
	parallel  int
	limbo     *limbo
	tracked   *tracker
}

// NewEngine makes an engine.
func NewEngine(o Options) *Engine {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Kin == nil {
		o.Kin = func(string) bool { return false }
	}
	if o.Force == nil {
		o.Force = func(Ref) bool { return false }
	}
	if o.ForceHint == nil {
		o.ForceHint = func(Ref) string { return "force" }
	}
	if o.Explain == nil {
		o.Explain = func(*change.Item, *unstructured.Unstructured, *unstructured.Unstructured) {}
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	e := &Engine{keys: o.Keys, clock: o.Clock, protected: map[schema.GroupKind]bool{}, former: o.Former, kin: o.Kin,
		force: o.Force, forceHint: o.ForceHint, explain: o.Explain, parallel: o.Parallel, tracked: newTracker(), limbo: &limbo{}}
	for _, gk := range o.Protected {
		e.protected[gk] = true
	}
	return e
}

// Settle says that requests of an engine before this one may still arrive for a while, such as
// those of a leader that lost its lease: what that one was about to make stays in its inventory, in
// case it comes late.
func (e *Engine) Settle(d time.Duration) { e.limbo.begin(e.clock, d) }

// ApplyOptions steer one run of Apply or Plan.
type ApplyOptions struct {
	AllowEmpty bool // prune although nothing is desired
	PruneCRDs  bool // prune CustomResourceDefinitions too; by default they stay until Delete
	NoPrune    bool
	// ApprovePrune is the gate: it sees everything that would be deleted and returns what must stay
	// for now.
	ApprovePrune func([]Entry) []Held
	// HoldRecreate says why an object must not be deleted and recreated now; nil where it may be.
	// It sees the entry of the inventory.
	HoldRecreate func(Entry) *change.Reason
	// NoDelete keeps all that left the set and was not told to go yet, and what the inventory says
	// of why it is held. What is gone is forgotten.
	NoDelete bool
	// Repair brings back what was applied, and nothing else: objects that are declared otherwise by
	// now, or were never applied, are skipped, nothing leaves the inventory, and nothing is told to
	// go but by a recreation that brings back what was there.
	Repair bool
	// DesiredElsewhere tells that another set wants an object that left this one: then it is not
	// deleted.
	DesiredElsewhere func(Ref) bool
	// DeclaredBy tells whether another set, named by the origin annotation of an object, still
	// declares it: then it stays that one's, and the error for the object names it. Of a set that
	// is not known it is taken as far as field managers allow. Without DeclaredBy an object is
	// taken from any set.
	DeclaredBy func(origin string, ref Ref) (declared, known bool)
	// GivenUp tells that another set, named by the origin annotation of an object, is known and
	// does not have the object in its inventory any more. A set that has it in its own, and does
	// not want it, deletes it then, although it never came to apply it. Without GivenUp what shows
	// another set is that one's.
	GivenUp func(origin string, ref Ref) bool
	// Complete fills in what a declaration leaves open, for an object that is about to be sent:
	// live is the object as it is, nil for a new one. It gives the object itself where there is
	// nothing to add, and never changes it. What is added is applied like the rest; it is no change
	// of the declaration.
	Complete func(declared, live *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Admit may refuse the change of an object that lives: it sees the object and what the server
	// would make of it. The object then stays as it is, and the error is that of the object. It
	// costs a dry run for each object that changes.
	Admit func(ctx context.Context, live, next *unstructured.Unstructured) error
	// Foreseen hears, in a plan, what the server would make of an object that is about to be sent;
	// for one that is as it is wanted it is not called. It may be called from several goroutines at
	// the same time, and must not change the object.
	Foreseen func(ref Ref, next *unstructured.Unstructured)
	// for a CustomResourceDefinition to be established, an APIService to be available, a new
	// webhook to answer; default 60 s
	CRDTimeout time.Duration
	// for deleted objects to be gone, prune as a whole or one recreation; default 10 s
	DeleteTimeout time.Duration
	// NoWait makes the run end without waiting for what it deletes, which is reported as Deleting:
	// the caller runs again when it is gone, or after a while. DeleteTimeout is then how long,
	// since it was deleted, an object holds back those that are deleted after it.
	NoWait   bool
	OnObject func(ObjectResult)
}

// DeleteOptions steer one run of Delete or PlanDelete.
type DeleteOptions struct {
	// Approve is the gate: it sees everything that would be deleted and returns what must stay for
	// now.
	Approve  func([]Entry) []Held
	KeepCRDs bool
	// how long the objects of one phase may take before the next begins; default 30 s
	Timeout          time.Duration
	NoWait           bool // as in ApplyOptions
	DesiredElsewhere func(Ref) bool
	OnObject         func(ObjectResult)
}

// Held is an object that the gate keeps from being deleted.
type Held struct {
	Ref    Ref           `json:"object"`
	Reason change.Reason `json:"why"`
	// Approval is the id that lets this object pass; empty when none does.
	Approval string `json:"approval,omitempty"`
}

// MarshalJSON adds the reason for people.
func (h Held) MarshalJSON() ([]byte, error) {
	type fields Held
	return printable.JSON(struct {
		fields
		Text string `json:"reason"`
	}{fields(h), h.Reason.String()})
}
