package permit

import (
	"maps"
	"sync"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// Memory is what one process remembers of permissions, from one Runs of a landscape to the next.
// The zero value remembers nothing.
type Memory struct {
	mu sync.Mutex
	// waits are the ids of objects that may go and were not told to go yet: until that, they need
	// no second permission.
	waits map[string]bool
	// review is the one that done is about: the ids of what it showed and what was deleted,
	// recreated, or told to go for that.
	review string
	done   map[string]bool
}

// Runs makes each permission count once in the runs of a landscape. A review counts until
// everything was applied, and for each object until that was deleted, recreated or told to go: such
// an object goes, however long it takes, and needs no permission any more. Runs notes that an
// approval is used before it lets an object pass. The approval stops counting after the run: if
// everything was applied, or if its one object was deleted, recreated or told to go. While the
// landscape is maintained between two runs, neither counts: nobody has seen or approved the
// deletions of a repair.
type Runs struct {
	mu sync.Mutex
	// seen reports whether the review has shown a deletion; nil where none is demanded. review
	// names it.
	seen   func(cluster string, ref change.Ref) bool
	review string
	// over is set once everything was applied, maintaining between two runs.
	over, maintaining bool
	// approved are all ids, passed those by which something passed, spent those that do not count
	// any more.
	approved, passed, spent map[string]bool
	// done are the ids of what was deleted or recreated, or told to go.
	done map[string]bool
	// open are the ids that count now. The gate reads them during a run; they change between two
	// runs only.
	open map[string]bool
	// memory outlives this value, ledger this process; nil for none.
	memory *Memory
	ledger Ledger
}

// NewRuns gives the gate for the runs of a landscape. Without a review none is demanded; without a
// memory nothing is remembered from former runs.
func NewRuns(gate Gate, review *Review, memory *Memory) (Gate, *Runs) {
	if memory == nil {
		memory = &Memory{}
	}
	r := &Runs{approved: maps.Clone(gate.Approved), passed: map[string]bool{}, spent: map[string]bool{}, done: map[string]bool{}, open: map[string]bool{}, memory: memory}
	r.reopen()
	gate.Approved = r.open
	r.ledger, gate.Ledger = gate.Ledger, r.take
	if review != nil {
		r.seen, r.review = review.has, review.ID
		gate.Reviewed = r.reviewed
	}
	return gate, r
}

// take is the Ledger of a gate.
func (r *Runs) take(id string, refs []change.Ref) bool {
	if r.memory.isWaiting(id) {
		return true
	}
	if r.ledger != nil && !r.ledger(id, refs) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed[id] = true
	return true
}

// reviewed reports whether the review has shown a deletion or recreation that has not happened yet.
func (r *Runs) reviewed(cluster string, ref change.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.over && !r.maintaining && !r.done[ApprovalID(cluster, ref)] && r.seen(cluster, ref)
}

// IsMaintaining reports whether this is between two runs.
func (r *Runs) IsMaintaining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.maintaining
}

// Note takes in the result of an object.
func (r *Runs) Note(o apply.ObjectResult) {
	id := ApprovalID(o.Cluster, o.Ref)
	r.memory.note(id, o)
	if o.Told || o.Action == apply.Deleted || o.Action == apply.Recreated {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done[id] = true
	}
}

func (m *Memory) note(id string, o apply.ObjectResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case o.Waits:
		if m.waits == nil {
			m.waits = map[string]bool{}
		}
		m.waits[id] = true
	case o.Told || o.Action != apply.HeldBack && o.Action != apply.Skipped && o.Action != apply.Failed:
		// of these it is not known that they were told to go
		delete(m.waits, id)
	}
}

func (m *Memory) isWaiting(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waits[id]
}

// Begin is called before each run.
func (r *Runs) Begin() {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.review != r.review || m.done == nil {
		m.review, m.done = r.review, map[string]bool{}
	}
	if r.review != "" {
		maps.Copy(r.done, m.done)
	}
	r.reopen()
	for id := range m.waits {
		r.open[id] = true
	}
}

// End is called after each run. complete says that it has applied everything.
func (r *Runs) End(complete bool) {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.review != "" && m.review == r.review {
		maps.Copy(m.done, r.done)
	}
	if complete {
		r.over = true
		maps.Copy(r.spent, r.passed)
	}
	for id := range r.passed {
		if r.done[id] {
			r.spent[id] = true
		}
	}
	clear(r.passed)
	r.reopen()
}

// Maintain is called when the time between two runs begins, and with false when it ends.
func (r *Runs) Maintain(maintaining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maintaining = maintaining
	r.reopen()
}

// Inherit takes over the spent approvals and the memory of the runs before.
func (r *Runs) Inherit(former *Runs) {
	former.mu.Lock()
	spent, memory := maps.Clone(former.spent), former.memory
	former.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.spent, spent)
	r.memory = memory
	r.reopen()
}

// reopen brings the ids that count up to date; r.mu is held.
func (r *Runs) reopen() {
	clear(r.open)
	for id, is := range r.approved {
		if is && !r.maintaining && !r.spent[id] {
			r.open[id] = true
		}
	}
}
