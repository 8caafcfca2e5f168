// SPDX-License-Identifier: Apache-2.0

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

// State is the state of a member.
type State string

// The states of a member.
const (
	// Waiting means that no run has ended yet.
	Waiting State = "waiting"
	// Converged and Failing are results of the last run.
	Converged State = "converged"
	Failing   State = "failing"
)

// Owner is a member between its runs. Left, Repair and Care are never called during a run; SetOf
// may be called at any time.
type Owner interface {
	// HasObjects reports whether a run has applied something, and whether it was rendered.
	HasObjects() (something, rendered bool)
	// SetOf returns the set that writes a ManagedResource; it is empty if the owner has no such
	// set.
	SetOf(cluster string, managedResource apply.Ref) string
	// Repair restores a drifted object. found is false if no set of the owner has the object. ok is
	// false if the caller has to retry.
	Repair(ctx context.Context, e apply.DriftEvent) (found, ok bool)
	// Care judges the health of the owner.
	Care(ctx context.Context)
}

// Member is the desired state of an owner.
type Member[O Owner] struct {
	ID string
	// Digest covers the whole input; a new digest supersedes a run.
	Digest string
	// After lists members whose last run must have succeeded first.
	After []string
	// ForceRun requests one more run with the same digest.
	ForceRun bool
	// New creates the owner of a new member.
	New func() O
	// SetInput hands new input to an owner; it is nil for none. The previous run may still be
	// active.
	SetInput func(O)
	// Converge is one run. A member without it is only repaired and judged.
	Converge func(context.Context, O) error
	// Pool names the members that share Slots.
	Pool string
}

// Options are the options of a fleet. Clock and Slots are required; the others are required for Set
// with members that converge.
type Options[O Owner] struct {
	Clock clock.WithTicker
	// Slots is how many members of a pool converge at a time.
	Slots int
	// RetryInterval is the time between a failed run and the next one. It doubles up to
	// MaxRetryInterval.
	RetryInterval, MaxRetryInterval time.Duration
	// SyncPeriod is the time between a successful run and the next one, plus up to 10 % to spread
	// the members.
	SyncPeriod time.Duration
	// OnRunEnd is called after each run, with the time until the next one.
	OnRunEnd func(m Member[O], o O, err error, next time.Duration)
}

// Fleet runs its members until they are dropped. It is safe for concurrent use, except that one
// goroutine calls Set and Stop.
type Fleet[O Owner] struct {
	options Options[O]

	mu      sync.Mutex
	members map[string]*member[O]
	// slots are the slots of each pool: a member puts one element in while it works.
	slots map[string]chan struct{}
	// succeeded has the members whose last run succeeded, including dropped ones: others may still
	// depend on them.
	succeeded map[string]bool
	// successChanged is closed when succeeded changes.
	successChanged chan struct{}
}

type member[O Owner] struct {
	owner O
	// trigger requests one more run. All runs of a member share it.
	trigger chan struct{}
	// busy is held by the goroutine that works on the owner. Repairs and health checks end with
	// gone.
	busy        sync.Mutex
	removed     context.Context
	markRemoved context.CancelCauseFunc

	// Fleet.mu guards these fields.
	digest string
	state  State
	cancel context.CancelCauseFunc
	done   chan struct{}

	driftQueue driftQueue
}

// New creates a fleet without members.
func New[O Owner](options Options[O]) *Fleet[O] {
	return &Fleet[O]{options: options, members: map[string]*member[O]{}, slots: map[string]chan struct{}{}, succeeded: map[string]bool{}, successChanged: make(chan struct{})}
}

// Causes of the end of a run.
var (
	errSuperseded     = errors.New("a newer state replaces it")
	errNoLongerMember = errors.New("it is no longer a member")
)

// Set defines the members. It starts a run for each member with a new digest, and cancels its
// current run, which may wait forever. It drops members that are not listed, and returns them once
// nothing works on them. No run begins before every member has its new input. Runs end with ctx.
func (f *Fleet[O]) Set(ctx context.Context, members []Member[O]) (dropped []O) {
	begin, listed := make(chan struct{}), map[string]bool{}
	for _, m := range members {
		listed[m.ID] = true
		switch {
		case m.Converge == nil && !f.has(m.ID):
			f.setInput(m)
		case m.Converge != nil && f.hasNewDigest(m):
			f.startMember(ctx, m, begin)
		case m.ForceRun:
			f.Trigger(m.ID)
		}
	}
	close(begin)
	for _, id := range f.IDs() {
		if !listed[id] {
			dropped = append(dropped, f.dropMember(id, errNoLongerMember))
		}
	}
	return dropped
}

func (f *Fleet[O]) has(id string) bool {
	_, known := f.Owner(id)
	return known
}

func (f *Fleet[O]) hasNewDigest(m Member[O]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.members[m.ID]
	return known == nil || known.digest != m.Digest
}

// setInput hands the input to a member, which it creates if necessary.
func (f *Fleet[O]) setInput(m Member[O]) *member[O] {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.members[m.ID]
	if at == nil {
		at = &member[O]{owner: m.New(), state: Waiting, trigger: make(chan struct{}, 1)}
		at.removed, at.markRemoved = context.WithCancelCause(context.Background())
		f.members[m.ID] = at
	}
	if m.SetInput != nil {
		m.SetInput(at.owner)
	}
	return at
}

// startMember replaces the goroutine that converges a member.
func (f *Fleet[O]) startMember(ctx context.Context, m Member[O], begin <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	at := f.setInput(m)
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

// dropMember removes a member, and waits until nothing works on it.
func (f *Fleet[O]) dropMember(id string, cause error) O {
	f.mu.Lock()
	at := f.members[id]
	delete(f.members, id)
	f.mu.Unlock()
	at.cancelWork(cause)
	if at.done != nil {
		<-at.done
	}
	at.busy.Lock() // a repair or a health check may still be ending
	defer at.busy.Unlock()
	return at.owner
}

// cancelWork cancels all work on a member.
func (at *member[O]) cancelWork(cause error) {
	at.markRemoved(cause)
	if at.cancel != nil {
		at.cancel(cause)
	}
}

// Stop drops all members.
func (f *Fleet[O]) Stop(cause error) (dropped []O) {
	f.mu.Lock()
	for _, at := range f.members {
		at.cancelWork(cause)
	}
	f.mu.Unlock()
	for _, id := range f.IDs() {
		dropped = append(dropped, f.dropMember(id, cause))
	}
	return dropped
}

// Trigger requests one more run of a member, if it exists. Several requests count as one.
func (f *Fleet[O]) Trigger(id string) {
	f.mu.Lock()
	at := f.members[id]
	f.mu.Unlock()
	if at == nil {
		return
	}
	select {
	case at.trigger <- struct{}{}:
	default:
	}
}

// IDs returns the sorted IDs of the members.
func (f *Fleet[O]) IDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.members))
}

// Owner returns the owner of a member, and reports whether the member exists.
func (f *Fleet[O]) Owner(id string) (o O, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.members[id]; at != nil {
		return at.owner, true
	}
	return o, false
}

// Owners returns the owners of all members, in the order of their IDs.
func (f *Fleet[O]) Owners() []O {
	var out []O
	for _, at := range f.sortedMembers() {
		out = append(out, at.owner)
	}
	return out
}

// SetsOf returns the sets that write a ManagedResource.
func (f *Fleet[O]) SetsOf(cluster string, managedResource apply.Ref) []string {
	var out []string
	for _, o := range f.Owners() {
		if set := o.SetOf(cluster, managedResource); set != "" {
			out = append(out, set)
		}
	}
	return out
}

// Status is the state of a member and its drift.
type Status struct {
	State State
	// DriftedObjects is the number of drifted objects that wait for the end of a run or for the
	// next care.
	DriftedObjects int
}

// Statuses returns the status of each member.
func (f *Fleet[O]) Statuses() map[string]Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]Status{}
	for id, at := range f.members {
		out[id] = Status{State: at.state, DriftedObjects: at.driftQueue.count()}
	}
	return out
}

func (f *Fleet[O]) sortedMembers() []*member[O] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*member[O]
	for _, id := range slices.Sorted(maps.Keys(f.members)) {
		out = append(out, f.members[id])
	}
	return out
}
