// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner/blockreasons"
	"github.com/pergola-dev/pergola/controllers/owner/changecounts"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

// flowSteps has the inputs and the progress of the steps of one operation.
type flowSteps struct {
	run *run
	// live is the owner that a deletion has read; it is nil for other operations.
	live *unstructured.Unstructured
	// rendered are the bundles to apply and request; they are nil for an operation that renders
	// nothing; componentsWithLateFacts are the components whose facts change meanwhile.
	rendered                map[string]render.Bundle
	componentsWithLateFacts map[string]bool
	// existingBundles has the removable bundles in the clusters, in reverse order of
	// reconciliation; namedBundles has the bundles that nodes name.
	existingBundles []orphan
	namedBundles    map[string]bool
	// openVirtualSteps has the steps with bundles for the virtual garden that are not healthy yet.
	openVirtualSteps map[string]bool
	// virtualLoss is the reason why the virtual garden is skipped: it no longer exists or was given
	// up. It is empty while the virtual garden exists.
	virtualLoss string
}

// stepFunc is the function of a step.
type stepFunc = func(ctx context.Context, report func(flow.State, string)) error

// verbFuncs return the work of a node, or the reason to skip it.
var verbFuncs = map[render.Verb]func(*flowSteps, render.FlowNode) (does stepFunc, skipped string, err error){
	"":                 (*flowSteps).applyNode, // without bundles
	render.VerbApply:   (*flowSteps).applyNode,
	render.VerbRequest: (*flowSteps).applyNode,
	render.VerbRemove:  (*flowSteps).removeNode,
	render.VerbAwait: func(s *flowSteps, n render.FlowNode) (stepFunc, string, error) {
		return s.findAction("state", n.Name, awaitableStates)
	},
	render.VerbTask: func(s *flowSteps, n render.FlowNode) (stepFunc, string, error) {
		return s.findAction("task", n.Name, callableTasks)
	},
}

// flowAction is a state or task; with deletion, only deletions may use it.
type flowAction struct {
	run           func(s *flowSteps, ctx context.Context, report func(flow.State, string)) error
	isForDeletion bool
}

// awaitableStates are the states that nodes can await.
var awaitableStates = map[string]flowAction{
	"references-exist":           {withoutReport(func(s *flowSteps, _ context.Context) error { return s.run.checkReferences(false) }), false},
	"dashboard-references-exist": {withoutReport(func(s *flowSteps, _ context.Context) error { return s.run.checkReferences(true) }), false},
	"virtual-garden-answers":     {withoutReport(func(s *flowSteps, ctx context.Context) error { return s.run.waitForVirtualGarden(ctx) }), false},
	stateUnused:                  {(*flowSteps).waitUntilUnused, true},
	"no-inventories":             {withoutReport((*flowSteps).requireNoInventories), true},
	"own-virtual-resources-only": {waitForManagedResources(virtualClass, true), true},
	"no-virtual-resources":       {waitForManagedResources(virtualClass, false), true},
	"no-runtime-resources":       {waitForManagedResources(runtimeClass, false), true},
}

// stateUnused means that nothing uses the virtual garden.
const stateUnused = "unused"

// callableTasks are the tasks that nodes can call.
var callableTasks = map[string]flowAction{
	"invalidate-virtual": {withoutReport((*flowSteps).forgetVirtualCluster), true},
	"remove-secrets":     {withoutReport((*flowSteps).removeSecrets), true},
	"yield-namespace":    {withoutReport((*flowSteps).disownNamespace), true},
	"release-references": {withoutReport(func(s *flowSteps, ctx context.Context) error { return s.run.protectReferences(ctx, nil, true) }), true},
	"release-extensions": {withoutReport(func(s *flowSteps, ctx context.Context) error { return s.run.uninstallExtensions(ctx) }), true},
}

func (s *flowSteps) findAction(what, name string, known map[string]flowAction) (does stepFunc, skipped string, err error) {
	of, ok := known[name]
	switch {
	case !ok:
		return nil, "", unknown.NameError(what, name, slices.Sorted(maps.Keys(known)))
	case of.isForDeletion && s.live == nil:
		return nil, "", fmt.Errorf("the %s %s is only for the deletion of an owner", what, name)
	}
	return func(ctx context.Context, report func(flow.State, string)) error {
		if err := of.run(s, ctx, report); err != nil || of.isForDeletion {
			return err
		}
		return s.run.runBundles(ctx, nil, nil, report)
	}, "", nil
}

// withoutReport wraps work without progress reports.
func withoutReport(does func(*flowSteps, context.Context) error) func(*flowSteps, context.Context, func(flow.State, string)) error {
	return func(s *flowSteps, ctx context.Context, _ func(flow.State, string)) error { return does(s, ctx) }
}

func noopStep(context.Context, func(flow.State, string)) error { return nil }

// runFlow runs the steps of a flow.
func (s *flowSteps) runFlow(ctx context.Context, definition render.Flow) error {
	graph, err := s.buildGraph(definition)
	if err != nil {
		return err
	}
	s.run.blockReasons = blockreasons.New(graph)
	outcome, err := flow.Run(ctx, graph, flow.Options{Clock: s.run.reconciler.Clock, OnEvent: func(e flow.Event) {
		s.run.reportEvent(e)
		s.recordVirtualStep(e)
	}})
	if outcome != nil {
		s.run.report.Nodes = outcome.Nodes
		s.run.blockReasons.SetReasons(s.run.report.Nodes)
	}
	return err
}

// buildGraph turns a flow of the catalogue into steps.
func (s *flowSteps) buildGraph(definition render.Flow) (flow.Graph, error) {
	s.namedBundles, s.openVirtualSteps, s.run.requests = map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, n := range definition.Nodes {
		for _, b := range n.Bundles {
			s.namedBundles[b] = true
		}
	}
	graph := FlowGraph(definition)
	for i, n := range definition.Nodes {
		perform, known := verbFuncs[n.Verb]
		if !known {
			return graph, fmt.Errorf("components/%s/flow.cue: %s: node %s: no operation performs the verb %s", definition.Owner, definition.Operation, n.ID, n.Verb)
		}
		does, skipped, err := perform(s, n)
		if err != nil {
			return graph, fmt.Errorf("components/%s/flow.cue: %s: node %s: %w", definition.Owner, definition.Operation, n.ID, err)
		}
		if !n.If {
			skipped = "not required by the declaration"
		}
		node := &graph.Nodes[i]
		node.Timeout, node.Run = s.run.stepTimeout(n.Timeout), does
		if skipped != "" {
			node.SkipIf = func(context.Context) (bool, string) { return true, skipped }
		}
	}
	return graph, nil
}

// FlowGraph returns the steps of a flow and their dependencies, without work.
func FlowGraph(definition render.Flow) (graph flow.Graph) {
	for _, n := range definition.Nodes {
		node := flow.Node{ID: n.ID, Title: n.ID, Run: noopStep}
		for _, id := range slices.Sorted(maps.Keys(n.After)) {
			node.Needs = append(node.Needs, flow.Edge{ID: id, Until: flow.State(strings.ToUpper(n.After[id][:1]) + n.After[id][1:])})
		}
		graph.Nodes = append(graph.Nodes, node)
	}
	return graph
}

// applyNode applies the rendered bundles of a node. The step is skipped if none of its bundles was
// rendered.
func (s *flowSteps) applyNode(n render.FlowNode) (does stepFunc, skipped string, err error) {
	if s.rendered == nil && len(n.Bundles) > 0 {
		return nil, "", fmt.Errorf("a deletion has no rendered bundle to %s", n.Verb)
	}
	var present []render.Bundle
	for _, name := range n.Bundles {
		if b, ok := s.rendered[name]; ok {
			present = append(present, b)
			s.openVirtualSteps[n.ID] = s.openVirtualSteps[n.ID] || b.Cluster == render.ClusterVirtual
			s.run.requests[name] = n.Operation
		}
	}
	if len(n.Bundles) > 0 && len(present) == 0 {
		skipped = "disabled"
	}
	return func(ctx context.Context, report func(flow.State, string)) error {
		return s.run.runBundles(ctx, present, s.componentsWithLateFacts, report)
	}, skipped, nil
}

// removeNode deletes the bundles of a node that exist in the clusters.
func (s *flowSteps) removeNode(n render.FlowNode) (does stepFunc, skipped string, err error) {
	if s.live == nil {
		return nil, "", errors.New("only the deletion of an owner removes bundles: the gate decides about all other deletions")
	}
	var present []orphan
	for _, o := range s.existingBundles {
		if name := o.bundle.Name; slices.Contains(n.Bundles, name) || !s.namedBundles[name] && slices.Contains(n.Bundles, render.OtherBundles) {
			present = append(present, o)
		}
	}
	if len(present) == 0 {
		skipped = "nothing to delete"
	}
	return func(ctx context.Context, report func(flow.State, string)) error {
		return panics.RunParallel(-1, present, func(_ int, o orphan) error { return s.deleteBundle(ctx, o.bundle, n.KeepObjects, report) })
	}, skipped, nil
}

// stepTimeout returns the timeout of a step, which an option may shorten.
func (r *run) stepTimeout(declared time.Duration) time.Duration {
	if r.reconciler.StepTimeout > 0 && (declared <= 0 || r.reconciler.StepTimeout < declared) {
		return r.reconciler.StepTimeout
	}
	return declared
}

// recordVirtualStep calls OnTargetReady when the last step with bundles for the virtual garden is
// healthy. Events come one at a time.
func (s *flowSteps) recordVirtualStep(e flow.Event) {
	if !s.openVirtualSteps[e.ID] || e.State != flow.Healthy && e.State != flow.RolledOut {
		return
	}
	s.openVirtualSteps[e.ID] = false
	for _, open := range s.openVirtualSteps {
		if open {
			return
		}
	}
	if s.run.owner.OnTargetReady != nil {
		s.run.owner.OnTargetReady()
	}
}

// runBundles applies the bundles of a node in parallel, then waits for all of them.
func (r *run) runBundles(ctx context.Context, bundles []render.Bundle, lateFacts map[string]bool, report func(flow.State, string)) error {
	waits := make([]waiter, len(bundles))
	if err := panics.RunParallel(-1, bundles, func(i int, b render.Bundle) (err error) {
		send := r.applyBundle
		if lateFacts[b.Component] {
			send = r.applyWithLateFacts
		}
		waits[i], err = send(ctx, b)
		return err
	}); err != nil {
		return err
	}
	report(flow.Applied, describeChanges(waits))
	if err := r.waitAll(ctx, waits, false, report); err != nil {
		return err
	}
	report(flow.Healthy, "")
	return r.waitAll(ctx, waits, true, report)
}

// describeChanges summarizes the changes of a step; the result is empty for none.
func describeChanges(waits []waiter) string {
	var sum changecounts.ChangeCounts
	for _, w := range waits {
		sum.AddCounts(w.changeCounts)
	}
	if sum.Total() == 0 {
		return ""
	}
	return sum.String()
}

// maxLateRounds limits how often a bundle is applied because its own objects change its facts.
const maxLateRounds = 3

// applyWithLateFacts applies a bundle whose component reads facts that change while the flow runs.
// The bundle itself may add a fact (the address of its own Service): then it is rendered and
// applied again.
func (r *run) applyWithLateFacts(ctx context.Context, b render.Bundle) (waiter, error) {
	b, used, err := r.renderAgain(ctx, b, r.owner.Input.Facts)
	if err != nil {
		return waiter{}, err
	}
	w, err := r.applyBundle(ctx, b)
	for round := 1; err == nil && round < maxLateRounds; round++ {
		applied := b.Digest
		if b, used, err = r.renderAgain(ctx, b, used); err != nil || b.Digest == applied {
			break
		}
		former := w
		w, err = r.applyBundle(ctx, b)
		w.mergeEarlier(former)
	}
	return w, err
}

// renderAgain renders a bundle again if facts have changed since they were used.
func (r *run) renderAgain(ctx context.Context, b render.Bundle, used render.Facts) (render.Bundle, render.Facts, error) {
	now, err := facts.UpdateDynamic(ctx, r.owner.factsSource(), used)
	if err != nil || reflect.DeepEqual(now, used) {
		return b, used, err
	}
	in, err := r.owner.withCredentials(r.owner.Input)
	if err != nil {
		return b, used, err
	}
	options := r.reconciler.Render
	in.Facts, options.OnlyComponents = now, []string{b.Component}
	result, err := panics.RunDetached(ctx, func() (render.Result, error) { return render.Render(in, options) })
	if err != nil {
		return b, used, fmt.Errorf("render %s again: %w", b.Name, err)
	}
	for _, fresh := range result.Bundles {
		if fresh.Name == b.Name {
			r.owner.updateState(func(s *State) { s.replaceBundle(fresh) })
			return fresh, now, nil
		}
	}
	return b, used, fmt.Errorf("bundle %s is no longer rendered", b.Name)
}
