package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
)

// State of a member.
type State string

// States.
const (
	// Waiting: no run has ended yet.
	Waiting State = "waiting"
	// Converged and Failing: how the last run ended.
	Converged State = "converged"
	Failing   State = "failing"
)

// Owner is what a member is from run to run. No run works on it while Left, Repair and Care are
// called; SetOf may be called at any time.
type Owner interface {
	// Left reports whether a run has left something that is maintained, and whether it was
	// rendered.
	Left() (something, rendered bool)
	// SetOf is the set that writes a ManagedResource; empty where it is not of the owner.
	SetOf(cluster string, managedResource apply.Ref) string
	// Repair brings back what changed. found is false if no set of the owner has the object. ok is
	// false if the repair has to be tried again.
	Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool)
	// Care judges its health.
	Care(ctx context.Context)
}

// Member is an owner as it is to be.
type Member[O Owner] struct {
	ID string
	// Digest of all that it is converged with: another one supersedes a run.
	Digest string
	// After lists members whose last run must have succeeded first.
	After []string
	// Again asks for one more run, although the digest is the same.
	Again bool
	// New makes the owner of a member that the fleet does not have yet.
	New func() O
	// Take gives an owner what it is converged with from now on; nil for nothing. A former run may
	// still be at work.
	Take func(O)
	// Converge is one run. A member without it stays as it is: it is repaired and judged.
	Converge func(context.Context, O) error
	// Pool is the name of those that share Slots.
	Pool string
}

// Options of a fleet. Clock and Slots are needed; the others are needed for Set of members that
// converge.
type Options[O Owner] struct {
	Clock clock.WithTicker
	// Slots is how many members of a pool are converged at a time.
	Slots int
	// RetryInterval is the time between a run that failed and the next one. It doubles up to
	// LongestRetry.
	RetryInterval, LongestRetry time.Duration
	// SyncPeriod is the time between a run that succeeded and the next one; up to a tenth more, so
	// that members do not come together.
	SyncPeriod time.Duration
	// Ended is called when a run of a member has ended, with the time until the next one.
	Ended func(m Member[O], o O, err error, next time.Duration)
}

// Fleet keeps its members until they are dropped. It is safe for concurrent use, but for Set and
// Stop, which one goroutine calls.
type Fleet[O Owner] struct {
	options Options[O]

	mu      sync.Mutex
	members map[string]*member[O]
	// slots of each pool: a member at work has put something in.
	slots map[string]chan struct{}
	// succeeded has the members whose last run succeeded, dropped ones included: others may still
	// come after them.
	succeeded map[string]bool
	// changed is closed when that changes.
	changed chan struct{}
}

type member[O Owner] struct {
	owner O
	// triggered asks for one more run. It stays the same from run to run.
	triggered chan struct{}
	// busy is held by whoever works on the owner. Repairs and judgements of a member end with gone.
	busy  sync.Mutex
	gone  context.Context
	leave context.CancelCauseFunc

	// Fleet.mu is held for these.
	digest string
	state  State
	cancel context.CancelCauseFunc
	done   chan struct{}

	drifted drifted
}

// New makes a fleet without members.
func New[O Owner](options Options[O]) *Fleet[O] {
	return &Fleet[O]{options: options, members: map[string]*member[O]{}, slots: map[string]chan struct{}{}, succeeded: map[string]bool{}, changed: make(chan struct{})}
}

// Causes of the end of a run.
var (
	errSuperseded = errors.New("a newer state is to be converged")
	errDropped    = errors.New("it is no member any more")
)

// Set says which members there are. It starts a run for each member with another digest, and
// cancels its current run, which may wait for ever. It drops members that are not listed, and
// returns them once nothing works on them. No run begins before every member has its new input.
// Runs end with ctx.
func (f *Fleet[O]) Set(ctx context.Context, members []Member[O]) (dropped []O) {
	begin, listed := make(chan struct{}), map[string]bool{}
	for _, m := range members {
		listed[m.ID] = true
		switch {
		case m.Converge == nil && !f.has(m.ID):
			f.take(m)
		case m.Converge != nil && f.differs(m):
			f.start(ctx, m, begin)
		case m.Again:
			f.Trigger(m.ID)
		}
	}
	close(begin)
	for _, id := range f.IDs() {
		if !listed[id] {
			dropped = append(dropped, f.drop(id, errDropped))
		}
	}
	return dropped
}

func (f *Fleet[O]) has(id string) bool {
	_, known := f.Owner(id)
	return known
}

func (f *Fleet[O]) differs(m Member[O]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.members[m.ID]
	return known == nil || known.digest != m.Digest
}

// take gives a member what it is converged with from now on.
func (f *Fleet[O]) take(m Member[O]) *member[O] {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.members[m.ID]
	if at == nil {
		at = &member[O]{owner: m.New(), state: Waiting, triggered: make(chan struct{}, 1)}
		at.gone, at.leave = context.WithCancelCause(context.Background())
		f.members[m.ID] = at
	}
	if m.Take != nil {
		m.Take(at.owner)
	}
	return at
}

// start puts a new goroutine in the place of the one that converges a member.
func (f *Fleet[O]) start(ctx context.Context, m Member[O], begin <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	at := f.take(m)
	f.mu.Lock()
	former, formerCancel := at.done, at.cancel
	at.digest, at.cancel, at.done = m.Digest, cancel, done
	f.mu.Unlock()
	go func() {
		defer close(done)
		defer cancel(nil)
		if former != nil {
			formerCancel(errSuperseded)
			<-former
		}
		select {
		case <-begin:
		case <-ctx.Done():
		}
		f.run(ctx, at, m)
	}()
}

// drop takes a member away, and waits until nothing works on it.
func (f *Fleet[O]) drop(id string, cause error) O {
	f.mu.Lock()
	at := f.members[id]
	delete(f.members, id)
	f.mu.Unlock()
	at.end(cause)
	if at.done != nil {
		<-at.done
	}
	at.busy.Lock() // a repair or a judgement may be at its end
	defer at.busy.Unlock()
	return at.owner
}

// end tells all that works on a member.
func (at *member[O]) end(cause error) {
	at.leave(cause)
	if at.cancel != nil {
		at.cancel(cause)
	}
}

// Stop drops all members.
func (f *Fleet[O]) Stop(cause error) (dropped []O) {
	f.mu.Lock()
	for _, at := range f.members {
		at.end(cause)
	}
	f.mu.Unlock()
	for _, id := range f.IDs() {
		dropped = append(dropped, f.drop(id, cause))
	}
	return dropped
}

// Trigger asks for one more run of a member, if it exists. Several requests count as one.
func (f *Fleet[O]) Trigger(id string) {
	f.mu.Lock()
	at := f.members[id]
	f.mu.Unlock()
	if at == nil {
		return
	}
	select {
	case at.triggered <- struct{}{}:
	default:
	}
}

// IDs of the members, sorted.
func (f *Fleet[O]) IDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.members))
}

// Owner of a member, and whether there is such a one.
func (f *Fleet[O]) Owner(id string) (o O, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.members[id]; at != nil {
		return at.owner, true
	}
	return o, false
}

// Owners of all members, in the order of their ids.
func (f *Fleet[O]) Owners() []O {
	var out []O
	for _, at := range f.all() {
		out = append(out, at.owner)
	}
	return out
}

// SetsOf are the sets that write a ManagedResource.
func (f *Fleet[O]) SetsOf(cluster string, managedResource apply.Ref) []string {
	var out []string
	for _, o := range f.Owners() {
		if set := o.SetOf(cluster, managedResource); set != "" {
			out = append(out, set)
		}
	}
	return out
}

// Status is how a member is.
type Status struct {
	State State
	// Drifted is the number of objects that changed and wait for the end of a run, or for the next
	// care.
	Drifted int
}

// Statuses of all members.
func (f *Fleet[O]) Statuses() map[string]Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]Status{}
	for id, at := range f.members {
		out[id] = Status{State: at.state, Drifted: at.drifted.count()}
	}
	return out
}

func (f *Fleet[O]) all() []*member[O] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*member[O]
	for _, id := range slices.Sorted(maps.Keys(f.members)) {
		out = append(out, f.members[id])
	}
	return out
}
