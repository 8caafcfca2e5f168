package permit

import (
	"maps"
	"sync"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// Memory has the permissions of one process that outlive a Runs of a landscape. The zero value is
// empty.
type Memory struct {
	mu sync.Mutex
	// waits are the ids of objects with a permission that still wait to be deleted: they need no
	// second one.
	waits map[string]bool
	// review is the ID of the review that done belongs to. done has the ids of deletions and
	// recreations that happened or were requested for that review.
	review string
	done   map[string]bool
}

// Runs makes each permission count once in the runs of a landscape. A review counts until
// everything was applied, and for each object until its deletion or recreation was requested or
// done. Runs records the use of an approval before an object passes. An approval ends after a run
// that has applied everything, or that has deleted or recreated its one object or requested that.
// While the landscape is maintained between two runs, neither counts: nobody has seen or approved
// the deletions of a repair.
type Runs struct {
	mu sync.Mutex
	// seen reports whether the review has shown a deletion; nil if no review is required. review is
	// its ID.
	seen   func(cluster string, ref change.Ref) bool
	review string
	// over is set once everything was applied, maintaining between two runs.
	over, maintaining bool
	// approved are all approved ids, passed the ids used in this run, spent the ids that no longer
	// count.
	approved, passed, spent map[string]bool
	// done are the ids of objects whose deletion or recreation happened or was requested.
	done map[string]bool
	// open are the ids that count now. The gate reads them during a run; they change only between
	// runs.
	open map[string]bool
	// memory outlives this value, ledger the process; nil for none.
	memory *Memory
	ledger Ledger
}

// NewRuns returns the gate for the runs of a landscape. A nil review means that none is required. A
// nil memory is an empty one.
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

// IsMaintaining reports whether the landscape is between two runs.
func (r *Runs) IsMaintaining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.maintaining
}

// Note records the result of an object.
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
		// otherwise its deletion may not have been requested
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

// End is called after each run. complete means that the run has applied everything.
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

// Maintain is called with true after a run, and with false before the next one.
func (r *Runs) Maintain(maintaining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maintaining = maintaining
	r.reopen()
}

// Inherit takes over the spent approvals and the memory of earlier runs.
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

// reopen recomputes the ids that count; the caller holds r.mu.
func (r *Runs) reopen() {
	clear(r.open)
	for id, is := range r.approved {
		if is && !r.maintaining && !r.spent[id] {
			r.open[id] = true
		}
	}
}
