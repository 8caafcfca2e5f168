package render

import (
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"cuelang.org/go/cue"

	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
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
	v, err := flowsOf(catalogue, in)
	if err != nil {
		return Flow{}, err
	}
	return decodeFlow(v, operation, in)
}

// flowsOf evaluates the flows of an owner.
func flowsOf(catalogue fs.FS, in Input) (cue.Value, error) {
	eval := newEvaluator(catalogue)
	v, err := eval.build(in.Owner.Kind, "flow")
	if err != nil {
		return v, err
	}
	return v.Unify(eval.encode(in.settings())), nil
}

func decodeFlow(v cue.Value, operation string, in Input) (Flow, error) {
	nodes := v.LookupPath(cue.MakePath(cue.Str("flow"), cue.Str(operation), cue.Str("nodes")))
	if !nodes.Exists() {
		var known []string
		operations, _ := v.LookupPath(cue.ParsePath("flow")).Fields() // without any there is none
		for operations != nil && operations.Next() {
			known = append(known, operations.Selector().Unquoted())
		}
		return Flow{}, fmt.Errorf("components/%s/flow.cue: %w", in.Owner.Kind, unknown.Name("operation", operation, known))
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

// CoveringFlow is the flow to reconcile an owner. It is an error when one of its flows does not mention all bundles, or is not
// sound: what is applied by such a catalogue could never be removed.
func CoveringFlow(catalogue fs.FS, in Input, bundles []Bundle) (Flow, error) {
	v, err := flowsOf(catalogue, in)
	if err != nil {
		return Flow{}, err
	}
	var reconcile Flow
	for _, operation := range Operations() {
		flow, err := decodeFlow(v, operation, in)
		if err == nil {
			err = flow.Cover(bundles)
		}
		if err != nil {
			return Flow{}, err
		}
		if operation == Operations()[0] {
			reconcile = flow
		}
	}
	return reconcile, nil
}

// Operations are those that every flow has.
func Operations() []string { return []string{"reconcile", "delete"} }

// recordedNode is a step as it is recorded for review.
type recordedNode struct {
	Bundles []string          `json:"bundles,omitempty"`
	Task    string            `json:"task,omitempty"`
	After   map[string]string `json:"after,omitempty"`
	Timeout string            `json:"timeout"`
	// Skipped is a step whose condition is false for this owner.
	Skipped bool `json:"skipped,omitempty"`
}

// FlowFiles are the flows of all owners of a landscape as golden files have them, by the name
// _flows/<owner kind>/[<namespace>.]<name>.yaml: what comes after what is as much a part of a render as the objects.
func FlowFiles(l *landscapes.Landscape, catalogue fs.FS, settings ...Setting) (map[string][]byte, error) {
	inputs, err := Owners(l, settings...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, in := range inputs {
		recorded := map[string]map[string]recordedNode{}
		for _, operation := range Operations() {
			flow, err := LoadFlow(catalogue, operation, in)
			if err != nil {
				return nil, err
			}
			nodes := map[string]recordedNode{}
			for _, n := range flow.Nodes {
				nodes[n.ID] = recordedNode{Bundles: n.Bundles, Task: n.Task, After: n.After, Timeout: n.Timeout.String(), Skipped: !n.If}
			}
			recorded[operation] = nodes
		}
		doc, err := MarshalYAML(recorded)
		if err != nil {
			return nil, fmt.Errorf("flow of %s: %w", in.Owner, err)
		}
		name := in.Owner.Name
		if in.Owner.Namespace != "" {
			name = in.Owner.Namespace + "." + name
		}
		files[path.Join(FlowFolder, in.Owner.Kind, name+".yaml")] = doc
	}
	return files, nil
}

// FlowFolder holds the flows among golden files; no cluster has such a name.
const FlowFolder = "_flows"

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
