package blocked

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/apply/flow"
)

// outOfTime returns the runner's message for a step that did not start before the run timed out.
func outOfTime() string { return "not started: " + context.DeadlineExceeded.Error() }

// Steps finds the cause of each step that a timed-out run did not start: the failed step helps
// people more than the timeout. Events must come one at a time, each step after the steps that it
// needs.
type Steps struct {
	needs   map[string][]flow.Edge
	reached map[string]flow.State
	// because has the message to show for steps that depend on a failed or blocked step.
	because map[string]string
}

// New returns the Steps of a graph that has not started.
func New(g flow.Graph) Steps {
	b := Steps{needs: map[string][]flow.Edge{}, reached: map[string]flow.State{}, because: map[string]string{}}
	for _, n := range g.Nodes {
		b.needs[n.ID] = n.Needs
	}
	return b
}

// Event replaces the message of a blocked step by its cause.
func (b Steps) Event(e flow.Event) flow.Event {
	switch e.State {
	case flow.Failed:
		b.because[e.ID] = fmt.Sprintf("because %s failed: %v", e.Title, e.Err)
	case flow.Blocked:
		if e.Message == outOfTime() {
			e.Message = b.reason(e.ID, e.Message)
		}
		b.because[e.ID] = e.Message
	default:
		b.reached[e.ID] = e.State
	}
	return e
}

// reason returns the cause of the first unmet need.
func (b Steps) reason(id, otherwise string) string {
	for _, edge := range b.needs[id] {
		if why := b.because[edge.ID]; why != "" && !reaches(b.reached[edge.ID], edge.Until) {
			return why
		}
	}
	return otherwise
}

// Explain replaces the messages of results by the causes from their events.
func (b Steps) Explain(nodes []flow.NodeResult) {
	for i, n := range nodes {
		if n.State == flow.Blocked && b.because[n.ID] != "" {
			nodes[i].Message = b.because[n.ID]
		}
	}
}

// reaches reports whether the state of a step satisfies an edge that waits for until.
func reaches(state, until flow.State) bool {
	switch until {
	case flow.Applied:
		return state == flow.Applied || state == flow.Healthy || state == flow.RolledOut || state == flow.Skipped
	case flow.RolledOut:
		return state == flow.RolledOut || state == flow.Skipped
	}
	return state == flow.Healthy || state == flow.RolledOut || state == flow.Skipped
}
