package render

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"

	"cuelang.org/go/cue"
)

// Flow is one operation of an owner: which bundles and tasks run, and after what.
type Flow struct {
	Owner     string     `json:"owner"`
	Operation string     `json:"operation"`
	Nodes     []FlowNode `json:"nodes"`
}

// FlowNode is a step. It names bundles of the catalogue, a registered task, or
// neither (a point where others meet).
type FlowNode struct {
	ID      string   `json:"id"`
	Bundles []string `json:"bundles,omitempty"`
	Task    string   `json:"task,omitempty"`
	// After maps a node to the state it has to reach first: applied, healthy or rolledOut.
	After   map[string]string `json:"after,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"`
	// If is the evaluated condition; false skips the node and releases its dependents.
	If bool `json:"if"`
}

// LoadFlow evaluates components/<owner kind>/flow.cue for one owner and operation.
func LoadFlow(catalogue fs.FS, operation string, in Input) (Flow, error) {
	v, err := newEvaluator(catalogue).build(in.Owner.Kind, "flow")
	if err != nil {
		return Flow{}, err
	}
	for _, name := range sortedKeys(in.Objects) {
		v = v.FillPath(cue.ParsePath(name), in.Objects[name])
	}
	nodes := v.LookupPath(cue.MakePath(cue.Str("flow"), cue.Str(operation), cue.Str("nodes")))
	if !nodes.Exists() {
		return Flow{}, fmt.Errorf("components/%s/flow.cue has no operation %q", in.Owner.Kind, operation)
	}
	fields, err := nodes.Fields()
	if err != nil {
		return Flow{}, cueError("flow "+operation, err)
	}
	flow := Flow{Owner: in.Owner.Kind, Operation: operation}
	for fields.Next() {
		node, err := decodeNode(fields.Selector().Unquoted(), fields.Value())
		if err != nil {
			return Flow{}, fmt.Errorf("components/%s/flow.cue: %s: node %s: %w", in.Owner.Kind, operation, fields.Selector(), err)
		}
		flow.Nodes = append(flow.Nodes, node)
	}
	sort.Slice(flow.Nodes, func(i, j int) bool { return flow.Nodes[i].ID < flow.Nodes[j].ID })
	return flow, flow.check()
}

func decodeNode(id string, v cue.Value) (FlowNode, error) {
	var raw struct {
		Bundles []string          `json:"bundles"`
		Task    string            `json:"task"`
		After   map[string]string `json:"after"`
		Timeout string            `json:"timeout"`
		If      bool              `json:"if"`
	}
	if err := v.Decode(&raw); err != nil {
		return FlowNode{}, cueError("decode", err)
	}
	timeout, err := time.ParseDuration(raw.Timeout)
	if err != nil {
		return FlowNode{}, fmt.Errorf("timeout: %w", err)
	}
	return FlowNode{ID: id, Bundles: raw.Bundles, Task: raw.Task, After: raw.After, Timeout: timeout, If: raw.If}, nil
}

// check finds edges to nodes that do not exist and bundles that two nodes claim;
// cycles are found by the runner, which prints them.
func (f Flow) check() error {
	known, claimed := map[string]bool{}, map[string]string{}
	for _, n := range f.Nodes {
		known[n.ID] = true
	}
	for _, n := range f.Nodes {
		for after := range n.After {
			if !known[after] {
				return fmt.Errorf("components/%s/flow.cue: %s: node %s comes after %q, which is no node", f.Owner, f.Operation, n.ID, after)
			}
		}
		for _, b := range n.Bundles {
			if other, ok := claimed[b]; ok {
				return fmt.Errorf("components/%s/flow.cue: %s: bundle %s belongs to node %s and to %s", f.Owner, f.Operation, b, other, n.ID)
			}
			claimed[b] = n.ID
		}
	}
	return nil
}

// Cover reports bundles that no node of the flow mentions: they would never be applied.
func (f Flow) Cover(bundles []Bundle) error {
	claimed := map[string]bool{}
	for _, n := range f.Nodes {
		for _, b := range n.Bundles {
			claimed[b] = true
		}
	}
	var missing []string
	for _, b := range bundles {
		if !claimed[b.Name] {
			claimed[b.Name] = true
			missing = append(missing, b.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("components/%s/flow.cue: no node of %s mentions the bundles %s", f.Owner, f.Operation, strings.Join(missing, ", "))
	}
	return nil
}
