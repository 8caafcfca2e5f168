// SPDX-License-Identifier: Apache-2.0

package blockreasons

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/apply/flow"
)

// timeoutMessage returns the runner's message for a step that did not start before the run timed
// out.
func timeoutMessage() string { return "not started: " + context.DeadlineExceeded.Error() }

// BlockReasons finds the cause of each step that a timed-out run did not start: the failed step
// helps people more than the timeout. Events must come one at a time, each step after the steps
// that it needs.
type BlockReasons struct {
	needs  map[string][]flow.Edge
	states map[string]flow.State
	// reasons has the message to show for steps that depend on a failed or blocked step.
	reasons map[string]string
}

// New returns the Steps of a graph that has not started.
func New(g flow.Graph) BlockReasons {
	b := BlockReasons{needs: map[string][]flow.Edge{}, states: map[string]flow.State{}, reasons: map[string]string{}}
	for _, n := range g.Nodes {
		b.needs[n.ID] = n.Needs
	}
	return b
}

// WithReason replaces the message of a blocked step by its cause.
func (b BlockReasons) WithReason(e flow.Event) flow.Event {
	switch e.State {
	case flow.Failed:
		b.reasons[e.ID] = fmt.Sprintf("because %s failed: %v", e.Title, e.Err)
	case flow.Blocked:
		if e.Message == timeoutMessage() {
			e.Message = b.firstUnmetReason(e.ID, e.Message)
		}
		b.reasons[e.ID] = e.Message
	default:
		b.states[e.ID] = e.State
	}
	return e
}

// firstUnmetReason returns the cause of the first unmet need.
func (b BlockReasons) firstUnmetReason(id, otherwise string) string {
	for _, edge := range b.needs[id] {
		if why := b.reasons[edge.ID]; why != "" && !isSatisfied(b.states[edge.ID], edge.Until) {
			return why
		}
	}
	return otherwise
}

// SetReasons replaces the messages of results by the causes from their events.
func (b BlockReasons) SetReasons(nodes []flow.NodeResult) {
	for i, n := range nodes {
		if n.State == flow.Blocked && b.reasons[n.ID] != "" {
			nodes[i].Message = b.reasons[n.ID]
		}
	}
}

// isSatisfied reports whether the state of a step satisfies an edge that waits for until.
func isSatisfied(state, until flow.State) bool {
	switch until {
	case flow.Applied:
		return state == flow.Applied || state == flow.Healthy || state == flow.RolledOut || state == flow.Skipped
	case flow.RolledOut:
		return state == flow.RolledOut || state == flow.Skipped
	}
	return state == flow.Healthy || state == flow.RolledOut || state == flow.Skipped
}
