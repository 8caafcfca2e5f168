// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/cycle"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
)

// Flow is the graph of one operation of an owner.
type Flow struct {
	Owner     string `json:"owner"`
	Operation string `json:"operation"`
	// Covers means that the graph has to mention every bundle of the owner.
	Covers bool       `json:"cover"`
	Nodes  []FlowNode `json:"nodes"`
}

// Verb is the work of a node; a node without one only joins others.
type Verb string

// Verbs of nodes.
const (
	// VerbApply applies bundles and waits until they are healthy, then until they are rolled out.
	VerbApply Verb = "apply"
	// VerbRemove deletes the objects of bundles and waits until they no longer exist.
	VerbRemove Verb = "remove"
	// VerbRequest is Apply for objects whose controllers act on request: it requests an operation
	// and waits for the result.
	VerbRequest Verb = "request"
	// VerbAwait succeeds when a registered state is reached.
	VerbAwait Verb = "await"
	// VerbTask calls a registered function.
	VerbTask Verb = "task"
)

// verbTakesBundles are all verbs; true means that the verb takes bundles.
var verbTakesBundles = map[Verb]bool{VerbApply: true, VerbRemove: true, VerbRequest: true, VerbAwait: false, VerbTask: false}

// OtherBundles stands for the bundles that no node of a flow names.
const OtherBundles = "*"

// FlowNode is a step of a flow.
type FlowNode struct {
	ID   string `json:"id"`
	Verb Verb   `json:"verb,omitempty"`
	// Bundles are applied, removed or requested by the node.
	Bundles []string `json:"bundles,omitempty"`
	// Name is the state that the node awaits, or its task.
	Name string `json:"name,omitempty"`
	// Operation is requested by the verb request.
	Operation string `json:"operation,omitempty"`
	// KeepObjects preserves the objects of removed bundles.
	KeepObjects bool `json:"keepObjects,omitempty"`
	// After maps a node to the state that it has to reach first: applied, healthy or rolledOut.
	After   map[string]string `json:"after,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"`
	// If is the evaluated condition; false skips the node and releases its dependents.
	If bool `json:"if"`
}

// Description describes the work of the node for people; the result is empty for a node that only
// joins others.
func (n FlowNode) Description() string {
	words := append([]string{string(n.Verb)}, strings.Join(n.Bundles, ", ")+n.Name)
	if n.Operation != "" {
		words = append(words, "for "+n.Operation)
	}
	if n.KeepObjects {
		words = append(words, "and keep the objects")
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// LoadFlow evaluates components/<owner kind>/flow.cue for one owner and operation.
func LoadFlow(catalogue fs.FS, operation string, in Input) (Flow, error) {
	v, err := evaluateFlows(catalogue, in)
	if err != nil {
		return Flow{}, err
	}
	return decodeFlow(v, operation, in)
}

// evaluateFlows evaluates the flows of an owner.
func evaluateFlows(catalogue fs.FS, in Input) (cue.Value, error) {
	eval := newEvaluator(catalogue)
	v, err := eval.build(in.Owner.Kind, "flow")
	if err != nil {
		return v, err
	}
	return v.Unify(eval.encode(in.declaredSettings())), nil
}

// requiredOperations are the operations that every owner has.
var requiredOperations = []string{"reconcile", operationDelete}

// operationsOf returns the operations of the flows of an owner.
func operationsOf(v cue.Value) (names []string) {
	operations, _ := v.LookupPath(cue.ParsePath("flow")).Fields() // an error means no operations
	for operations != nil && operations.Next() {
		names = append(names, operations.Selector().Unquoted())
	}
	return names
}

func decodeFlow(v cue.Value, operation string, in Input) (Flow, error) {
	file := "components/" + in.Owner.Kind + "/flow.cue"
	if !v.LookupPath(cue.ParsePath("#Operation")).Exists() {
		return Flow{}, fmt.Errorf("%s: the catalogue has no components/flow.cue, which defines the verbs: copy it from the built-in catalogue", file)
	}
	graph := v.LookupPath(cue.MakePath(cue.Str("flow"), cue.Str(operation)))
	if !graph.Exists() {
		return Flow{}, fmt.Errorf("%s: %w", file, unknown.NameError("operation", operation, operationsOf(v)))
	}
	flow := Flow{Owner: in.Owner.Kind, Operation: operation}
	if err := graph.LookupPath(cue.ParsePath("cover")).Decode(&flow.Covers); err != nil {
		return Flow{}, cueError("flow "+operation, err)
	}
	fields, err := graph.LookupPath(cue.ParsePath("nodes")).Fields()
	if err != nil {
		return Flow{}, cueError("flow "+operation, err)
	}
	for fields.Next() {
		node, err := decodeNode(fields.Selector().Unquoted(), fields.Value())
		if err != nil {
			return Flow{}, fmt.Errorf("%s: %s: node %s: %w", file, operation, fields.Selector(), err)
		}
		flow.Nodes = append(flow.Nodes, node)
	}
	sort.Slice(flow.Nodes, func(i, j int) bool { return flow.Nodes[i].ID < flow.Nodes[j].ID })
	return flow, flow.check()
}

// nodeFields are the fields of #Node in components/flow.cue, without the verbs.
var nodeFields = []string{"after", "if", "keepObjects", "operation", "timeout"}

func decodeNode(id string, v cue.Value) (FlowNode, error) {
	var raw struct {
		Operation   string            `json:"operation"`
		KeepObjects bool              `json:"keepObjects"`
		After       map[string]string `json:"after"`
		Timeout     string            `json:"timeout"`
		If          bool              `json:"if"`
	}
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return FlowNode{}, cueError("evaluate", err)
	}
	if err := v.Decode(&raw); err != nil {
		return FlowNode{}, cueError("decode", err)
	}
	for fields, _ := v.Fields(); fields.Next(); {
		name := fields.Selector().Unquoted()
		if _, isVerb := verbTakesBundles[Verb(name)]; !isVerb && !slices.Contains(nodeFields, name) {
			known := slices.Clone(nodeFields)
			for verb := range verbTakesBundles {
				known = append(known, string(verb))
			}
			slices.Sort(known)
			p := fields.Value().Pos()
			return FlowNode{}, fmt.Errorf("%s:%d:%d: %w", p.Filename(), p.Line(), p.Column(), unknown.NameError("field", name, known))
		}
	}
	timeout, err := time.ParseDuration(raw.Timeout)
	if err == nil && timeout < 0 {
		err = fmt.Errorf("%s is negative; 0s means no timeout", raw.Timeout)
	}
	if err != nil {
		return FlowNode{}, fmt.Errorf("timeout: %w", err)
	}
	node := FlowNode{ID: id, Operation: raw.Operation, KeepObjects: raw.KeepObjects, After: raw.After, Timeout: timeout, If: raw.If}
	for _, verb := range slices.Sorted(maps.Keys(verbTakesBundles)) {
		field := v.LookupPath(cue.ParsePath(string(verb)))
		if !field.Exists() {
			continue
		}
		if node.Verb != "" {
			p := field.Pos()
			return FlowNode{}, fmt.Errorf("%s:%d:%d: it has the verbs %s and %s; make a node for each", p.Filename(), p.Line(), p.Column(), node.Verb, verb)
		}
		node.Verb = verb
		into := any(&node.Name)
		if verbTakesBundles[verb] {
			into = &node.Bundles
		}
		if err := field.Decode(into); err != nil {
			return FlowNode{}, cueError(string(verb), err)
		}
	}
	return node, nil
}

// ReconcileFlow returns the flow that reconciles an owner. It fails if one of the owner's flows is
// invalid or omits a required bundle: objects of such a catalogue could never be removed.
func ReconcileFlow(catalogue fs.FS, in Input, bundles []Bundle) (Flow, error) {
	flows, err := allFlows(catalogue, in)
	if err != nil {
		return Flow{}, err
	}
	for _, flow := range flows {
		if err := flow.CheckCoverage(bundles); err != nil {
			return Flow{}, err
		}
	}
	return flows[0], nil
}

// allFlows returns the flows of all operations of an owner; reconcile comes first.
func allFlows(catalogue fs.FS, in Input) ([]Flow, error) {
	v, err := evaluateFlows(catalogue, in)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(requiredOperations)
	for _, name := range operationsOf(v) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var flows []Flow
	for _, name := range names {
		flow, err := decodeFlow(v, name, in)
		if err != nil {
			return nil, err
		}
		flows = append(flows, flow)
	}
	return flows, nil
}

// goldenFields is a node for review, in the language of flow.cue.
func (n FlowNode) goldenFields() map[string]any {
	out := map[string]any{"timeout": n.Timeout.String()}
	if verbTakesBundles[n.Verb] {
		out[string(n.Verb)] = n.Bundles
	} else if n.Verb != "" {
		out[string(n.Verb)] = n.Name
	}
	if n.Operation != "" {
		out["operation"] = n.Operation
	}
	if n.KeepObjects {
		out["keepObjects"] = true
	}
	if len(n.After) > 0 {
		out["after"] = n.After
	}
	if !n.If {
		out["skipped"] = true // its condition is false for this owner
	}
	return out
}

// FlowFiles returns the flows of all owners of a landscape as golden files, named _flows/<owner
// kind>/[<namespace>.]<name>.yaml. The order of steps is as much a part of a render as the objects.
func FlowFiles(l *landscapes.Landscape, catalogue fs.FS, settings ...Setting) (map[string][]byte, error) {
	inputs, err := Owners(l, settings...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, in := range inputs {
		flows, err := allFlows(catalogue, in)
		if err != nil {
			return nil, err
		}
		recorded := map[string]map[string]any{}
		for _, flow := range flows {
			recorded[flow.Operation] = map[string]any{}
			for _, n := range flow.Nodes {
				recorded[flow.Operation][n.ID] = n.goldenFields()
			}
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

// FlowFolder holds the flows among golden files; no cluster has this name.
const FlowFolder = "_flows"

// operationDelete is the operation that deletes an owner.
const operationDelete = "delete"

// check finds verbs that the operation does not allow, edges to unknown nodes, cycles, and bundles
// that two nodes claim.
func (f Flow) check() error {
	nodes, claimed := map[string]FlowNode{}, map[string]string{}
	for _, n := range f.Nodes {
		nodes[n.ID] = n
	}
	for _, n := range f.Nodes {
		switch {
		case f.Operation == operationDelete && (n.Verb == VerbApply || n.Verb == VerbRequest):
			return fmt.Errorf("components/%s/flow.cue: %s: node %s: a deletion may not %s bundles; use the verb remove", f.Owner, f.Operation, n.ID, n.Verb)
		case f.Operation != operationDelete && n.Verb == VerbRemove:
			return fmt.Errorf("components/%s/flow.cue: %s: node %s: only the operation %s may remove bundles; use the verb apply or request", f.Owner, f.Operation, n.ID, operationDelete)
		case n.Verb != VerbRemove && slices.Contains(n.Bundles, OtherBundles):
			return fmt.Errorf("components/%s/flow.cue: %s: node %s: %q is for the verb remove; name the bundles", f.Owner, f.Operation, n.ID, OtherBundles)
		}
		for after := range n.After {
			if _, known := nodes[after]; !known {
				return fmt.Errorf("components/%s/flow.cue: %s: node %s comes after %q, which is not a node", f.Owner, f.Operation, n.ID, after)
			}
		}
		for _, b := range n.Bundles {
			if other, ok := claimed[b]; ok {
				return fmt.Errorf("components/%s/flow.cue: %s: bundle %s belongs to node %s and to %s", f.Owner, f.Operation, b, other, n.ID)
			}
			claimed[b] = n.ID
		}
	}
	after := func(id string) []string { return slices.Sorted(maps.Keys(nodes[id].After)) }
	if path := cycle.FindCycle(slices.Sorted(maps.Keys(nodes)), after); path != nil {
		return fmt.Errorf("components/%s/flow.cue: %s: nodes wait for each other in a cycle: %s", f.Owner, f.Operation, strings.Join(path, " → "))
	}
	return nil
}

// CheckCoverage reports bundles that the flow has to mention and does not: they would never be
// applied, or never removed. It also reports bundles that a node applies although their objects act
// only on request.
func (f Flow) CheckCoverage(bundles []Bundle) error {
	nodes := map[string]FlowNode{}
	for _, n := range f.Nodes {
		for _, b := range n.Bundles {
			nodes[b] = n
		}
	}
	var missing []string
	for _, b := range bundles {
		n, found := nodes[b.Name]
		if !found && f.Covers && !slices.Contains(missing, b.Name) {
			missing = append(missing, b.Name)
		}
		// Overlays cannot change the flow. Their objects are asked to reconcile with any verb.
		i := slices.IndexFunc(b.Objects, func(o Object) bool { return o.Origin.Overlay == "" && IsReconciledOnRequest(o.GroupVersionKind()) })
		if n.Verb == VerbApply && b.Delivery.Direct && i >= 0 {
			return fmt.Errorf("components/%s/flow.cue: %s: node %s applies bundle %s, whose %s acts only on request; use the verb request", f.Owner, f.Operation, n.ID, b.Name, b.Objects[i].GetKind())
		}
		if n.Verb == VerbRequest && !b.Delivery.Direct && n.Operation != "reconcile" {
			return fmt.Errorf("components/%s/flow.cue: %s: node %s requests %s of bundle %s, which is in a ManagedResource: request only reconcile, or apply the bundle directly", f.Owner, f.Operation, n.ID, n.Operation, b.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("components/%s/flow.cue: no node of %s mentions the bundles %s", f.Owner, f.Operation, strings.Join(missing, ", "))
	}
	return nil
}

// IsReconciledOnRequest reports whether the controller of a kind acts on the operation annotation,
// not on a new generation alone.
func IsReconciledOnRequest(gvk schema.GroupVersionKind) bool {
	return IsExtension(gvk) || gvk.Group == "druid.gardener.cloud" && gvk.Kind == "Etcd"
}

// IsExtension reports whether extensions reconcile a kind.
func IsExtension(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "extensions.gardener.cloud" && gvk.Kind != "Cluster"
}
