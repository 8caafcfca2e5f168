package landscape

import (
	"maps"
	"sync"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// Passing is what a process remembers, from one converger of a landscape to the next, of what was let pass. The zero value remembers nothing.
type Passing struct {
	mu sync.Mutex
	// waits are the ids of objects that were let pass, and that nobody has told to go yet: until that, they need not be let pass again.
	waits map[string]bool
	// review is the one that done is about: the ids of what it was to show, and was deleted or recreated, or told to go for that.
	review string
	done   map[string]bool
}

// once sees to it that what lets a deletion or recreation pass does so once. What a review has shown counts until everything was applied, an
// approval until it has let something pass and everything was applied, and neither for what was deleted or recreated already, or told to go:
// that goes, however long it takes, and asks for nothing any more. Between two runs neither counts: what has to go then, to repair what somebody
// has changed by hand, is nothing that anybody has seen or approved.
type once struct {
	mu sync.Mutex
	// seen tells what the review has shown; nil where none is demanded.
	seen func(cluster string, ref change.Ref) bool
	// over says that everything was applied, keeping that this is between two runs.
	over, keeping bool
	// approved are all ids, passed those by which something passed, spent those that do not count any more.
	approved, passed, spent map[string]bool
	// done are the ids of what was deleted or recreated, or told to go.
	done map[string]bool
	// review names what seen is about, remembers is what outlives this converger.
	review    string
	remembers *Passing
	// open are the ids that count now. The gate reads them while a run goes on, and they change between two runs only.
	open map[string]bool
}

// gate is the one that all runs of a converger ask.
func (o Options) gate() (permit.Gate, *once) {
	gate := o.Gate
	of := &once{approved: maps.Clone(gate.Approved), passed: map[string]bool{}, spent: map[string]bool{}, done: map[string]bool{}, open: map[string]bool{}, remembers: o.Passing}
	if of.remembers == nil {
		of.remembers = &Passing{}
	}
	of.reopen()
	gate.Approved = of.open
	take := gate.Take
	gate.Take = func(id string, refs []change.Ref) bool {
		if of.remembers.isWaiting(id) {
			return true
		}
		if take != nil && !take(id, refs) {
			return false
		}
		of.mu.Lock()
		defer of.mu.Unlock()
		of.passed[id] = true
		return true
	}
	if o.Reviewed != nil {
		of.seen, of.review = o.Reviewed.has, o.Reviewed.of
		gate.Reviewed = of.reviewed
	}
	return gate, of
}

// reviewed tells whether a deletion or recreation was to be seen, and has not happened.
func (o *once) reviewed(cluster string, ref change.Ref) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.over && !o.keeping && !o.done[permit.ApprovalID(cluster, ref)] && o.seen(cluster, ref)
}

// isKept tells whether this is between two runs.
func (o *once) isKept() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keeping
}

// note hears what became of an object.
func (o *once) note(r apply.ObjectResult) {
	id := permit.ApprovalID(r.Cluster, r.Ref)
	o.remembers.note(id, r)
	if r.Told || r.Action == apply.Deleted || r.Action == apply.Recreated {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.done[id] = true
	}
}

func (p *Passing) note(id string, r apply.ObjectResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Waits:
		if p.waits == nil {
			p.waits = map[string]bool{}
		}
		p.waits[id] = true
	case r.Told || r.Action != apply.HeldBack && r.Action != apply.Skipped && r.Action != apply.Failed: // of these it is not known that it was told to go
		delete(p.waits, id)
	}
}

func (p *Passing) isWaiting(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits[id]
}

// begins is called before each run.
func (o *once) begins() {
	p := o.remembers
	p.mu.Lock()
	defer p.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.review != o.review || p.done == nil {
		p.review, p.done = o.review, map[string]bool{}
	}
	if o.review != "" {
		maps.Copy(o.done, p.done)
	}
	o.reopen()
	for id := range p.waits {
		o.open[id] = true
	}
}

// ended is called after each run; complete says that it has applied everything.
func (o *once) ended(complete bool) {
	p := o.remembers
	p.mu.Lock()
	defer p.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.review != "" && p.review == o.review {
		maps.Copy(p.done, o.done)
	}
	if complete {
		o.over = true
		maps.Copy(o.spent, o.passed)
	}
	for id := range o.passed {
		if o.done[id] {
			o.spent[id] = true
		}
	}
	clear(o.passed)
	o.reopen()
}

// keep is called when the time between two runs begins, and with false when it ends.
func (o *once) keep(keeping bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keeping = keeping
	o.reopen()
}

// inherit takes over what does not count any more.
func (o *once) inherit(former *once) {
	former.mu.Lock()
	spent, remembers := maps.Clone(former.spent), former.remembers
	former.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.spent, spent)
	o.remembers = remembers
	o.reopen()
}

// reopen brings the ids that count up to date; o.mu is held.
func (o *once) reopen() {
	clear(o.open)
	for id, is := range o.approved {
		if is && !o.keeping && !o.spent[id] {
			o.open[id] = true
		}
	}
}
