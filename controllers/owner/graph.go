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
	"github.com/pergola-dev/pergola/controllers/owner/blocked"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/controllers/owner/tally"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

// steps has the inputs and the progress of the steps of one operation.
type steps struct {
	run *run
	// live is the owner that a deletion has read, nil for other operations.
	live *unstructured.Unstructured
	// rendered are the bundles to apply and request, nil for an operation that renders nothing;
	// late are the components whose facts change meanwhile.
	rendered map[string]render.Bundle
	late     map[string]bool
	// there has the removable bundles in the clusters, in reverse order of reconciliation; named
	// has the bundles that nodes name.
	there []orphan
	named map[string]bool
	// open has the steps with bundles for the virtual garden that are not healthy yet.
	open map[string]bool
	// lost is the reason why the virtual garden is skipped: it no longer exists or was given up. It
	// is empty while the virtual garden exists.
	lost string
}

// work is the function of a step.
type work = func(ctx context.Context, report func(flow.State, string)) error

// verbs return the work of a node, or the reason to skip it.
var verbs = map[render.Verb]func(*steps, render.FlowNode) (does work, skipped string, err error){
	"":             (*steps).apply, // without bundles
	render.Apply:   (*steps).apply,
	render.Request: (*steps).apply,
	render.Remove:  (*steps).remove,
	render.Await:   func(s *steps, n render.FlowNode) (work, string, error) { return s.registered("state", n.Name, states) },
	render.Task:    func(s *steps, n render.FlowNode) (work, string, error) { return s.registered("task", n.Name, tasks) },
}

// registered is a state or task; with deletion, only deletions may use it.
type registered struct {
	does     func(s *steps, ctx context.Context, report func(flow.State, string)) error
	deletion bool
}

// states are the states that nodes can await.
var states = map[string]registered{
	"references-exist":           {plain(func(s *steps, _ context.Context) error { return s.run.referencesThere(false) }), false},
	"dashboard-references-exist": {plain(func(s *steps, _ context.Context) error { return s.run.referencesThere(true) }), false},
	"virtual-garden-answers":     {plain(func(s *steps, ctx context.Context) error { return s.run.virtualReady(ctx) }), false},
	stateUnused:                  {(*steps).awaitUnused, true},
	"no-inventories":             {plain((*steps).noInventories), true},
	"own-virtual-resources-only": {awaitOnly(virtualClass, true), true},
	"no-virtual-resources":       {awaitOnly(virtualClass, false), true},
	"no-runtime-resources":       {awaitOnly(runtimeClass, false), true},
}

// stateUnused means that nothing uses the virtual garden.
const stateUnused = "unused"

// tasks are the tasks that nodes can call.
var tasks = map[string]registered{
	"invalidate-virtual": {plain((*steps).invalidate), true},
	"remove-secrets":     {plain((*steps).removeSecrets), true},
	"yield-namespace":    {plain((*steps).yieldNamespace), true},
	"release-references": {plain(func(s *steps, ctx context.Context) error { return s.run.protect(ctx, nil, true) }), true},
	"release-extensions": {plain(func(s *steps, ctx context.Context) error { return s.run.endExtensions(ctx) }), true},
}

func (s *steps) registered(what, name string, known map[string]registered) (does work, skipped string, err error) {
	of, ok := known[name]
	switch {
	case !ok:
		return nil, "", unknown.Name(what, name, slices.Sorted(maps.Keys(known)))
	case of.deletion && s.live == nil:
		return nil, "", fmt.Errorf("the %s %s is for the deletion of an owner alone", what, name)
	}
	return func(ctx context.Context, report func(flow.State, string)) error {
		if err := of.does(s, ctx, report); err != nil || of.deletion {
			return err
		}
		return s.run.runBundles(ctx, nil, nil, report)
	}, "", nil
}

// plain wraps work without progress reports.
func plain(does func(*steps, context.Context) error) func(*steps, context.Context, func(flow.State, string)) error {
	return func(s *steps, ctx context.Context, _ func(flow.State, string)) error { return does(s, ctx) }
}

func nothing(context.Context, func(flow.State, string)) error { return nil }

// follow runs the steps of a flow.
func (s *steps) follow(ctx context.Context, definition render.Flow) error {
	graph, err := s.graph(definition)
	if err != nil {
		return err
	}
	s.run.blocked = blocked.New(graph)
	outcome, err := flow.Run(ctx, graph, flow.Options{Clock: s.run.reconciler.Clock, OnEvent: func(e flow.Event) {
		s.run.event(e)
		s.targetStep(e)
	}})
	if outcome != nil {
		s.run.report.Nodes = outcome.Nodes
		s.run.blocked.Explain(s.run.report.Nodes)
	}
	return err
}

// graph turns a flow of the catalogue into steps.
func (s *steps) graph(definition render.Flow) (flow.Graph, error) {
	s.named, s.open, s.run.requests = map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, n := range definition.Nodes {
		for _, b := range n.Bundles {
			s.named[b] = true
		}
	}
	graph := Outline(definition)
	for i, n := range definition.Nodes {
		perform, known := verbs[n.Verb]
		if !known {
			return graph, fmt.Errorf("components/%s/flow.cue: %s: node %s: no operation performs the verb %s", definition.Owner, definition.Operation, n.ID, n.Verb)
		}
		does, skipped, err := perform(s, n)
		if err != nil {
			return graph, fmt.Errorf("components/%s/flow.cue: %s: node %s: %w", definition.Owner, definition.Operation, n.ID, err)
		}
		if !n.If {
			skipped = "not wanted by the declaration"
		}
		node := &graph.Nodes[i]
		node.Timeout, node.Run = s.run.timeout(n.Timeout), does
		if skipped != "" {
			node.SkipIf = func(context.Context) (bool, string) { return true, skipped }
		}
	}
	return graph, nil
}

// Outline returns the steps of a flow and their dependencies, without work.
func Outline(definition render.Flow) (graph flow.Graph) {
	for _, n := range definition.Nodes {
		node := flow.Node{ID: n.ID, Title: n.ID, Run: nothing}
		for _, id := range slices.Sorted(maps.Keys(n.After)) {
			node.Needs = append(node.Needs, flow.Edge{ID: id, Until: flow.State(strings.ToUpper(n.After[id][:1]) + n.After[id][1:])})
		}
		graph.Nodes = append(graph.Nodes, node)
	}
	return graph
}

// apply applies the rendered bundles of a node. The step is skipped if none of its bundles was
// rendered.
func (s *steps) apply(n render.FlowNode) (does work, skipped string, err error) {
	if s.rendered == nil && len(n.Bundles) > 0 {
		return nil, "", fmt.Errorf("a deletion renders nothing that it could %s", n.Verb)
	}
	var present []render.Bundle
	for _, name := range n.Bundles {
		if b, ok := s.rendered[name]; ok {
			present = append(present, b)
			s.open[n.ID] = s.open[n.ID] || b.Cluster == render.ClusterVirtual
			s.run.requests[name] = n.Operation
		}
	}
	if len(n.Bundles) > 0 && len(present) == 0 {
		skipped = "disabled"
	}
	return func(ctx context.Context, report func(flow.State, string)) error {
		return s.run.runBundles(ctx, present, s.late, report)
	}, skipped, nil
}

// remove deletes the bundles of a node that exist in the clusters.
func (s *steps) remove(n render.FlowNode) (does work, skipped string, err error) {
	if s.live == nil {
		return nil, "", errors.New("only the deletion of an owner removes bundles: the gate judges all others")
	}
	var present []orphan
	for _, o := range s.there {
		if name := o.bundle.Name; slices.Contains(n.Bundles, name) || !s.named[name] && slices.Contains(n.Bundles, render.OtherBundles) {
			present = append(present, o)
		}
	}
	if len(present) == 0 {
		skipped = "not there"
	}
	return func(ctx context.Context, report func(flow.State, string)) error {
		return panics.SideBySide(-1, present, func(_ int, o orphan) error { return s.takeDownBundle(ctx, o.bundle, n.KeepObjects, report) })
	}, skipped, nil
}

// timeout returns the timeout of a step, which an option may shorten.
func (r *run) timeout(declared time.Duration) time.Duration {
	if r.reconciler.StepTimeout > 0 && (declared <= 0 || r.reconciler.StepTimeout < declared) {
		return r.reconciler.StepTimeout
	}
	return declared
}

// targetStep calls OnTargetReady when the last step with bundles for the virtual garden is healthy.
// Events come one at a time.
func (s *steps) targetStep(e flow.Event) {
	if !s.open[e.ID] || e.State != flow.Healthy && e.State != flow.RolledOut {
		return
	}
	s.open[e.ID] = false
	for _, open := range s.open {
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
	if err := panics.SideBySide(-1, bundles, func(i int, b render.Bundle) (err error) {
		send := r.applyBundle
		if lateFacts[b.Component] {
			send = r.applyLate
		}
		waits[i], err = send(ctx, b)
		return err
	}); err != nil {
		return err
	}
	report(flow.Applied, wrote(waits))
	if err := r.waitAll(ctx, waits, false, report); err != nil {
		return err
	}
	report(flow.Healthy, "")
	return r.waitAll(ctx, waits, true, report)
}

// wrote summarizes the changes of a step; empty for none.
func wrote(waits []waiter) string {
	var sum tally.Tally
	for _, w := range waits {
		sum.Plus(w.written)
	}
	if sum.Total() == 0 {
		return ""
	}
	return sum.String()
}

// lateRounds limits how often a bundle is applied because its own objects change its facts.
const lateRounds = 3

// applyLate applies a bundle whose component reads facts that change while the flow runs. The
// bundle itself may add a fact (the address of its own Service): then it is rendered and applied
// again.
func (r *run) applyLate(ctx context.Context, b render.Bundle) (waiter, error) {
	b, used, err := r.refresh(ctx, b, r.owner.Input.Facts)
	if err != nil {
		return waiter{}, err
	}
	w, err := r.applyBundle(ctx, b)
	for round := 1; err == nil && round < lateRounds; round++ {
		applied := b.Digest
		if b, used, err = r.refresh(ctx, b, used); err != nil || b.Digest == applied {
			break
		}
		former := w
		w, err = r.applyBundle(ctx, b)
		w.follows(former)
	}
	return w, err
}

// refresh renders a bundle again if facts have changed since they were used.
func (r *run) refresh(ctx context.Context, b render.Bundle, used render.Facts) (render.Bundle, render.Facts, error) {
	now, err := facts.Late(ctx, r.owner.site(), used)
	if err != nil || reflect.DeepEqual(now, used) {
		return b, used, err
	}
	in, err := r.owner.withCredentials(r.owner.Input)
	if err != nil {
		return b, used, err
	}
	options := r.reconciler.Render
	in.Facts, options.Only = now, []string{b.Component}
	result, err := panics.Detached(ctx, func() (render.Result, error) { return render.Render(in, options) })
	if err != nil {
		return b, used, fmt.Errorf("render %s again: %w", b.Name, err)
	}
	for _, fresh := range result.Bundles {
		if fresh.Name == b.Name {
			r.owner.note(func(s *State) { s.renderedAgain(fresh) })
			return fresh, now, nil
		}
	}
	return b, used, fmt.Errorf("bundle %s is not rendered any more", b.Name)
}
