// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/panics"
)

// Options configure a run. The zero value is valid.
type Options struct {
	// Limit is the number of nodes that work at a time; no limit when zero. A node that has
	// reported Applied only waits and does not count.
	Limit int
	Clock clock.WithTicker
	// OnEvent is called for every change of state and every message, one at a time.
	OnEvent func(Event)
	// GracePeriod is how long Run waits for nodes after ctx has ended; the default is 1.5 seconds.
	// Nodes that still run then are reported as failed.
	GracePeriod time.Duration
}

// Event is a change of one node.
type Event struct {
	ID, Title string
	State     State
	Message   string
	// MessageOnly reports whether only the message is new: the current work or wait of the node.
	MessageOnly bool
	Err         error
	At          time.Time
	Progress    Progress
}

// Progress counts nodes as upstream's flows do: skipped ones do not count.
type Progress struct {
	Done, Total int
	Percent     int // 100 for an empty flow
}

// NodeResult is the result of a node.
type NodeResult struct {
	ID, Title         string
	State             State
	Message           string
	Err               error
	Started, Finished time.Time // zero if it never ran
}

// Result is the result of a run, nodes in topological order.
type Result struct {
	Nodes    []NodeResult
	Progress Progress
}

// Node returns the result of a node by ID.
func (r *Result) Node(id string) NodeResult {
	for _, n := range r.Nodes {
		if n.ID == id {
			return n
		}
	}
	return NodeResult{}
}

// NodeError is the failure of one node.
type NodeError struct {
	ID, Title string
	Err       error
}

func (e *NodeError) Error() string { return fmt.Sprintf("%s: %v", e.Title, e.Err) }
func (e *NodeError) Unwrap() error { return e.Err }

// Run runs the graph. The error joins the failures of nodes as NodeErrors in topological order;
// blocked nodes are only in the result.
func Run(ctx context.Context, g Graph, o Options) (*Result, error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.GracePeriod <= 0 {
		o.GracePeriod = 1500 * time.Millisecond
	}
	r := &runner{Options: o, order: order, nodes: map[string]*node{}, wake: make(chan struct{}, 1)}
	for _, n := range g.Nodes {
		r.nodes[n.ID] = &node{Node: n, result: NodeResult{ID: n.ID, Title: n.title(), State: Pending}}
	}
	r.loop(ctx)
	return r.finish()
}

type node struct {
	Node
	result NodeResult
	// reachedRank is the rank of the furthest state; a failure does not lower it, because
	// dependents may rely on it.
	reachedRank int
	busy        bool // counts against the limit
	done        bool
}

type runner struct {
	Options
	order []string

	mu     sync.Mutex
	nodes  map[string]*node
	active int  // nodes with a running goroutine
	busy   int  // active nodes that are not yet Applied
	closed bool // the result is complete: late reports are dropped
	wake   chan struct{}
}

// loop starts nodes when they are ready, until none is left or ctx ends.
func (r *runner) loop(ctx context.Context) {
	for {
		if ctx.Err() == nil {
			r.start(ctx)
		}
		active, pending := r.countUnfinished()
		if active == 0 && (pending == 0 || ctx.Err() != nil) {
			r.cancelPending(ctx)
			return
		}
		if active == 0 {
			continue // the last node ended between start and open
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			r.drain()
			r.cancelPending(ctx)
			return
		}
	}
}

// drain waits for the running nodes, for at most Grace.
func (r *runner) drain() {
	grace := r.Clock.NewTimer(r.GracePeriod)
	defer grace.Stop()
	for {
		if active, _ := r.countUnfinished(); active == 0 {
			return
		}
		select {
		case <-r.wake:
		case <-grace.C():
			return
		}
	}
}

// countUnfinished counts the running nodes and those that have not started.
func (r *runner) countUnfinished() (active, pending int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.nodes {
		if n.result.State == Pending {
			pending++
		}
	}
	return r.active, pending
}

// start starts every node whose dependencies are met, in topological order, and blocks those that
// cannot run.
func (r *runner) start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.order {
		n := r.nodes[id]
		if n.result.State != Pending || n.done {
			continue
		}
		ready, because := r.checkNeeds(n)
		switch {
		case because != "":
			n.done = true
			r.changeState(n, Blocked, because, nil)
		case ready && (r.Limit <= 0 || r.busy < r.Limit):
			n.busy = true
			r.busy++
			r.active++
			n.result.State = Running
			go r.runNode(ctx, n)
		}
	}
}

// checkNeeds reports whether a node may start, or why it never will.
func (r *runner) checkNeeds(n *node) (ready bool, because string) {
	ready = true
	for _, e := range n.Needs {
		needed := r.nodes[e.ID]
		switch {
		case needed.reachedRank >= stateOrder[e.requiredState()]:
		case needed.result.State == Failed:
			return false, fmt.Sprintf("because %s failed: %v", needed.title(), needed.result.Err)
		case needed.result.State == Blocked:
			return false, needed.result.Message
		default:
			ready = false
		}
	}
	return ready, ""
}

func (r *runner) runNode(ctx context.Context, n *node) {
	skip, reason, err := r.callSkipIf(ctx, n)
	if skip {
		r.endNode(n, Skipped, reason, nil)
		return
	}
	if err == nil {
		r.mu.Lock()
		n.result.Started = r.Clock.Now()
		r.changeState(n, Running, "", nil)
		r.mu.Unlock()
		err = r.callRun(ctx, n)
	}
	if err != nil {
		r.endNode(n, Failed, "", err)
		return
	}
	r.endNode(n, RolledOut, "", nil)
}

func (r *runner) callSkipIf(ctx context.Context, n *node) (skip bool, reason string, err error) {
	if n.SkipIf == nil {
		return false, "", nil
	}
	defer panics.Catch(&err)
	skip, reason = n.SkipIf(ctx)
	return skip, reason, nil
}

// errTimeout is the cause of a context that ended by the node's own timeout.
var errTimeout = errors.New("timeout")

func (r *runner) callRun(ctx context.Context, n *node) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if n.Timeout > 0 {
		timer := r.Clock.NewTimer(n.Timeout)
		defer timer.Stop()
		go func() {
			select {
			case <-timer.C():
				cancel(errTimeout)
			case <-ctx.Done():
			}
		}()
	}
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
			err = fmt.Errorf("not done after %s%s: %w", n.Timeout, r.lastMessage(n), err)
		}
	}()
	defer panics.Catch(&err)
	return n.Run(ctx, func(s State, message string) { r.report(n, s, message) })
}

// lastMessage returns the last message of a node, which usually says what it waited for.
func (r *runner) lastMessage(n *node) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.result.Message == "" {
		return ""
	}
	return " (" + n.result.Message + ")"
}

// report records progress. A state that the node has already passed only updates the message.
func (r *runner) report(n *node, s State, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.done || r.closed {
		return
	}
	if stateOrder[s] <= stateOrder[n.result.State] || s == RolledOut || s == Skipped {
		s = n.result.State
	}
	note := s == n.result.State && message != ""
	r.setResult(n, s, message, nil)
	r.emitEvent(n, note)
	if stateOrder[s] >= stateOrder[Applied] {
		r.markIdle(n)
	}
}

func (r *runner) markIdle(n *node) {
	if n.busy {
		n.busy = false
		r.busy--
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *runner) endNode(n *node, s State, message string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	n.done = true
	n.result.Finished = r.Clock.Now()
	r.changeState(n, s, message, err)
	r.active--
	r.markIdle(n)
}

// changeState sets a node's state and emits an event. The caller holds the lock, so events come one
// at a time and in order.
func (r *runner) changeState(n *node, s State, message string, err error) {
	r.setResult(n, s, message, err)
	r.emitEvent(n, false)
}

func (r *runner) setResult(n *node, s State, message string, err error) {
	n.result.State, n.result.Err = s, err
	n.reachedRank = max(n.reachedRank, stateOrder[s])
	if message != "" {
		n.result.Message = message
	}
	if err != nil {
		n.result.Message = err.Error()
	}
}

func (r *runner) emitEvent(n *node, note bool) {
	if r.OnEvent != nil {
		r.OnEvent(Event{ID: n.ID, Title: n.title(), State: n.result.State, Message: n.result.Message, MessageOnly: note, Err: n.result.Err,
			At: r.Clock.Now(), Progress: r.progress()})
	}
}

func (r *runner) progress() Progress {
	p := Progress{Percent: 100}
	for _, n := range r.nodes {
		switch n.result.State {
		case Skipped:
			continue
		case RolledOut:
			p.Done++
		}
		p.Total++
	}
	if p.Total > 0 {
		p.Percent = p.Done * 100 / p.Total
	}
	return p
}

// cancelPending ends the remaining nodes, which did not start or ignored ctx.
func (r *runner) cancelPending(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.order {
		n := r.nodes[id]
		switch {
		case n.done:
		case n.result.State == Pending:
			r.changeState(n, Blocked, "not started: "+context.Cause(ctx).Error(), nil)
		default:
			r.changeState(n, Failed, "", fmt.Errorf("interrupted while it was running: %w", context.Cause(ctx)))
		}
	}
	r.closed = true
}

func (r *runner) finish() (*Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &Result{Progress: r.progress()}
	var errs []error
	for _, id := range r.order {
		n := r.nodes[id]
		out.Nodes = append(out.Nodes, n.result)
		if n.result.State == Failed {
			errs = append(errs, &NodeError{ID: n.ID, Title: n.title(), Err: n.result.Err})
		}
	}
	return out, errors.Join(errs...)
}
