// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"maps"
	"sync"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// RunMemory has the permissions of one process that outlive a Runs of a landscape. The zero value
// is empty.
type RunMemory struct {
	mu sync.Mutex
	// waitingObjects are the ids of objects with a permission that still wait to be deleted: they
	// need no second one.
	waitingObjects map[string]bool
	// reviewID is the ID of the review that doneObjects belongs to. doneObjects has the ids of
	// deletions and recreations that happened or were requested for that review.
	reviewID    string
	doneObjects map[string]bool
}

// RunLedger makes each permission count once in the runs of a landscape. A review counts until
// everything was applied, and for each object until its deletion or recreation was requested or
// done. Runs records the use of an approval before an object passes. An approval ends after a run
// that has applied everything, or that has deleted or recreated its only object, or has requested
// this. While the landscape is maintained between two runs, neither counts: no one has seen or
// approved the deletions of a repair.
type RunLedger struct {
	mu sync.Mutex
	// isReviewed reports whether the review has shown a deletion; it is nil if no review is
	// required. review is its ID.
	isReviewed func(cluster string, ref change.Ref) bool
	reviewID   string
	// isComplete is set once everything was applied, maintaining between two runs.
	isComplete, isMaintaining bool
	// approved are all approved ids; usedInRun are the ids used in this run; expired are the ids
	// that no longer count.
	approved, usedInRun, expired map[string]bool
	// doneObjects are the ids of objects whose deletion or recreation happened or was requested.
	doneObjects map[string]bool
	// activeIDs are the ids that count now. The gate reads them during a run; they change only
	// between runs.
	activeIDs map[string]bool
	// memory outlives this value, and ledger outlives the process; ledger is nil for none.
	memory *RunMemory
	ledger Ledger
}

// NewRunLedger returns the gate for the runs of a landscape. A nil review means that none is
// required. A nil memory is an empty one.
func NewRunLedger(gate Gate, review *Review, memory *RunMemory) (Gate, *RunLedger) {
	if memory == nil {
		memory = &RunMemory{}
	}
	r := &RunLedger{approved: maps.Clone(gate.Approved), usedInRun: map[string]bool{}, expired: map[string]bool{}, doneObjects: map[string]bool{}, activeIDs: map[string]bool{}, memory: memory}
	r.updateActiveIDs()
	gate.Approved = r.activeIDs
	r.ledger, gate.Ledger = gate.Ledger, r.usePermission
	if review != nil {
		r.isReviewed, r.reviewID = review.hasReviewed, review.ID
		gate.Reviewed = r.isDeletionReviewed
	}
	return gate, r
}

// usePermission is the Ledger of a gate.
func (r *RunLedger) usePermission(id string, refs []change.Ref) bool {
	if r.memory.isWaiting(id) {
		return true
	}
	if r.ledger != nil && !r.ledger(id, refs) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usedInRun[id] = true
	return true
}

// isDeletionReviewed reports whether the review has shown a deletion or recreation that has not
// happened yet.
func (r *RunLedger) isDeletionReviewed(cluster string, ref change.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.isComplete && !r.isMaintaining && !r.doneObjects[ApprovalID(cluster, ref)] && r.isReviewed(cluster, ref)
}

// IsMaintaining reports whether the landscape is between two runs.
func (r *RunLedger) IsMaintaining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isMaintaining
}

// RecordResult records the result of an object.
func (r *RunLedger) RecordResult(o apply.ObjectResult) {
	id := ApprovalID(o.Cluster, o.Ref)
	r.memory.recordResult(id, o)
	if o.DeleteRequested || o.Action == apply.Deleted || o.Action == apply.Recreated {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.doneObjects[id] = true
	}
}

func (m *RunMemory) recordResult(id string, o apply.ObjectResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case o.IsDeletionPending:
		if m.waitingObjects == nil {
			m.waitingObjects = map[string]bool{}
		}
		m.waitingObjects[id] = true
	case o.DeleteRequested || o.Action != apply.HeldBack && o.Action != apply.Skipped && o.Action != apply.Failed:
		// otherwise its deletion may not have been requested
		delete(m.waitingObjects, id)
	}
}

func (m *RunMemory) isWaiting(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waitingObjects[id]
}

// BeginRun is called before each run.
func (r *RunLedger) BeginRun() {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.reviewID != r.reviewID || m.doneObjects == nil {
		m.reviewID, m.doneObjects = r.reviewID, map[string]bool{}
	}
	if r.reviewID != "" {
		maps.Copy(r.doneObjects, m.doneObjects)
	}
	r.updateActiveIDs()
	for id := range m.waitingObjects {
		r.activeIDs[id] = true
	}
}

// EndRun is called after each run. complete means that the run has applied everything.
func (r *RunLedger) EndRun(complete bool) {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reviewID != "" && m.reviewID == r.reviewID {
		maps.Copy(m.doneObjects, r.doneObjects)
	}
	if complete {
		r.isComplete = true
		maps.Copy(r.expired, r.usedInRun)
	}
	for id := range r.usedInRun {
		if r.doneObjects[id] {
			r.expired[id] = true
		}
	}
	clear(r.usedInRun)
	r.updateActiveIDs()
}

// SetMaintaining is called with true after a run, and with false before the next one.
func (r *RunLedger) SetMaintaining(maintaining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isMaintaining = maintaining
	r.updateActiveIDs()
}

// TakeOver takes over the spent approvals and the memory of earlier runs.
func (r *RunLedger) TakeOver(former *RunLedger) {
	former.mu.Lock()
	spent, memory := maps.Clone(former.expired), former.memory
	former.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.expired, spent)
	r.memory = memory
	r.updateActiveIDs()
}

// updateActiveIDs recomputes the ids that count; the caller holds r.mu.
func (r *RunLedger) updateActiveIDs() {
	clear(r.activeIDs)
	for id, is := range r.approved {
		if is && !r.isMaintaining && !r.expired[id] {
			r.activeIDs[id] = true
		}
	}
}
