// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/internal/cycle"
)

// State is the progress of a node.
type State string

// A node goes Pending, Running, Applied, Healthy, RolledOut. It ends as Failed, as Blocked if a
// dependency failed or the run ended, or as Skipped by its SkipIf.
const (
	Pending   State = "Pending"
	Running   State = "Running"
	Applied   State = "Applied"
	Healthy   State = "Healthy"
	RolledOut State = "RolledOut"
	Failed    State = "Failed"
	Blocked   State = "Blocked"
	Skipped   State = "Skipped"
)

// stateOrder orders the states of progress; a skipped node satisfies all its dependents.
var stateOrder = map[State]int{Running: 1, Applied: 2, Healthy: 3, RolledOut: 4, Skipped: 4}

// Edge is a dependency: the node starts when ID has reached Until (Applied, Healthy or RolledOut;
// Healthy when empty).
type Edge struct {
	ID    string
	Until State
}

func (e Edge) requiredState() State {
	if e.Until == "" {
		return Healthy
	}
	return e.Until
}

// Node is one step.
type Node struct {
	ID    string
	Title string // for people; the ID when empty
	Needs []Edge
	// Timeout ends the context of Run; zero means no timeout.
	Timeout time.Duration
	// SkipIf reports whether to skip the node, and why. It is called when all dependencies are met.
	SkipIf func(ctx context.Context) (skip bool, reason string)
	// Run does the work. It reports Applied and Healthy when it reaches them (dependents may start
	// at once) and messages in between; returning nil means RolledOut. A panic becomes an error.
	Run func(ctx context.Context, report func(State, string)) error
}

func (n Node) title() string {
	if n.Title == "" {
		return n.ID
	}
	return n.Title
}

// Graph is a set of nodes; their order matters only among equals.
type Graph struct{ Nodes []Node }

// Validate reports nodes without ID or Run, duplicate IDs, unknown dependencies, wrong states and
// cycles, all in one error.
func (g Graph) Validate() error {
	var errs []error
	known := map[string]bool{}
	for _, n := range g.Nodes {
		switch {
		case n.ID == "":
			errs = append(errs, fmt.Errorf("a step has no id (title %q)", n.Title))
		case known[n.ID]:
			errs = append(errs, fmt.Errorf("step %s exists twice", n.ID))
		}
		known[n.ID] = true
		if n.Run == nil {
			errs = append(errs, fmt.Errorf("step %s does nothing: it has no Run", n.ID))
		}
	}
	for _, n := range g.Nodes {
		for _, e := range n.Needs {
			if !known[e.ID] {
				errs = append(errs, fmt.Errorf("step %s needs %s, which does not exist", n.ID, e.ID))
			}
			if u := e.requiredState(); u != Applied && u != Healthy && u != RolledOut {
				errs = append(errs, fmt.Errorf("step %s needs %s until %s, which is not one of Applied, Healthy, RolledOut", n.ID, e.ID, u))
			}
		}
	}
	if path := g.cycle(); path != nil {
		errs = append(errs, fmt.Errorf("steps wait for each other: %s", strings.Join(path, " → ")))
	}
	return errors.Join(errs...)
}

// cycle returns the nodes of one cycle, the first repeated at the end, each needing the next.
func (g Graph) cycle() []string {
	var ids []string
	needs := map[string][]string{}
	for _, n := range g.Nodes {
		ids = append(ids, n.ID)
		for _, e := range n.Needs {
			needs[n.ID] = append(needs[n.ID], e.ID)
		}
	}
	return cycle.FindCycle(ids, func(id string) []string { return needs[id] })
}

// Order returns the IDs in topological order: every node after its dependencies, and otherwise as
// in the slice.
func (g Graph) Order() ([]string, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	placed := map[string]bool{}
	var out []string
	for len(out) < len(g.Nodes) {
		for _, n := range g.Nodes {
			if !placed[n.ID] && areNeedsPlaced(n, placed) {
				placed[n.ID] = true
				out = append(out, n.ID)
			}
		}
	}
	return out, nil
}

func areNeedsPlaced(n Node, placed map[string]bool) bool {
	for _, e := range n.Needs {
		if !placed[e.ID] {
			return false
		}
	}
	return true
}

// Dot writes the graph in Graphviz' language, with edges from dependencies to dependents.
func (g Graph) Dot(w io.Writer) error {
	order, err := g.Order()
	if err != nil {
		return err
	}
	nodes := map[string]Node{}
	for _, n := range g.Nodes {
		nodes[n.ID] = n
	}
	var b strings.Builder
	b.WriteString("digraph flow {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n")
	for _, id := range order {
		fmt.Fprintf(&b, "  %q [label=%q];\n", id, nodes[id].title())
	}
	style := map[State]string{Applied: "dotted", Healthy: "solid", RolledOut: "bold"}
	for _, id := range order {
		for _, e := range nodes[id].Needs {
			fmt.Fprintf(&b, "  %q -> %q [style=%s, tooltip=%q];\n", e.ID, id, style[e.requiredState()], "until "+strings.ToLower(string(e.requiredState())))
		}
	}
	b.WriteString("}\n")
	_, err = io.WriteString(w, b.String())
	return err
}
