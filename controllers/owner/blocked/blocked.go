package blocked

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/apply/flow"
)

// outOfTime is what the runner says of a step that had not begun when the time of the whole run was
// over.
func outOfTime() string { return "not started: " + context.DeadlineExceeded.Error() }

// Steps find the step for which another one was not started when the time was over: that, not the
// time, is what a person can mend. Events come one at a time, those of a step after those of what
// it needs.
type Steps struct {
	needs   map[string][]flow.Edge
	reached map[string]flow.State
	// because says of a step that has failed, or was not started, what others are told.
	because map[string]string
}

// New knows the steps of a graph before they begin.
func New(g flow.Graph) Steps {
	b := Steps{needs: map[string][]flow.Edge{}, reached: map[string]flow.State{}, because: map[string]string{}}
	for _, n := range g.Nodes {
		b.needs[n.ID] = n.Needs
	}
	return b
}

// Event gives the event of a blocked step its reason.
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

// reason is that of the first need that is not met.
func (b Steps) reason(id, otherwise string) string {
	for _, edge := range b.needs[id] {
		if why := b.because[edge.ID]; why != "" && !reaches(b.reached[edge.ID], edge.Until) {
			return why
		}
	}
	return otherwise
}

// Explain gives the results the reasons that the events had.
func (b Steps) Explain(nodes []flow.NodeResult) {
	for i, n := range nodes {
		if n.State == flow.Blocked && b.because[n.ID] != "" {
			nodes[i].Message = b.because[n.ID]
		}
	}
}

// reaches says whether a step that got to a state satisfies one that waits for another.
func reaches(state, until flow.State) bool {
	switch until {
	case flow.Applied:
		return state == flow.Applied || state == flow.Healthy || state == flow.RolledOut || state == flow.Skipped
	case flow.RolledOut:
		return state == flow.RolledOut || state == flow.Skipped
	}
	return state == flow.Healthy || state == flow.RolledOut || state == flow.Skipped
}
