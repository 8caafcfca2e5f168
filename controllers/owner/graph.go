package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/controllers/owner/tally"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
)

// graph turns the flow of the catalogue into steps. A node none of whose bundles
// is rendered (its components are disabled) is skipped and releases its dependents.
func (r *run) graph(definition render.Flow, result render.Result) flow.Graph {
	bundles := map[string]render.Bundle{}
	for _, b := range result.Bundles {
		bundles[b.Name] = b
	}
	lateFacts := map[string]bool{}
	for _, c := range result.Components {
		lateFacts[c.Path] = len(c.Facts) > 0
	}
	var graph flow.Graph
	r.open = map[string]bool{}
	for _, n := range definition.Nodes {
		var present []render.Bundle
		for _, name := range n.Bundles {
			if b, ok := bundles[name]; ok {
				present = append(present, b)
			}
		}
		node := flow.Node{ID: n.ID, Title: n.ID, Timeout: r.timeout(n.Timeout)}
		for _, id := range slices.Sorted(maps.Keys(n.After)) {
			node.Needs = append(node.Needs, flow.Edge{ID: id, Until: untilState(n.After[id])})
		}
		switch {
		case !n.If:
			node.SkipIf = skip("not wanted by the declaration")
		case n.Task == "" && len(n.Bundles) > 0 && len(present) == 0:
			node.SkipIf = skip("disabled")
		}
		for _, b := range present {
			r.open[n.ID] = r.open[n.ID] || b.Cluster == render.ClusterVirtual
		}
		task, wanted := n.Task, present
		node.Run = func(ctx context.Context, report func(flow.State, string)) error {
			if task != "" {
				if err := r.task(ctx, task); err != nil {
					return err
				}
			}
			return r.runBundles(ctx, wanted, lateFacts, report)
		}
		graph.Nodes = append(graph.Nodes, node)
	}
	return graph
}

// timeout of a step, which an option may shorten.
func (r *run) timeout(declared time.Duration) time.Duration {
	if r.StepTimeout > 0 && (declared <= 0 || r.StepTimeout < declared) {
		return r.StepTimeout
	}
	return declared
}

// targetStep notices when the last step that fills the target has become healthy. Events come one at a time.
func (r *run) targetStep(e flow.Event) {
	if !r.open[e.ID] || e.State != flow.Healthy && e.State != flow.RolledOut {
		return
	}
	r.open[e.ID] = false
	for _, open := range r.open {
		if open {
			return
		}
	}
	if r.owner.OnTargetReady != nil {
		r.owner.OnTargetReady()
	}
}

func skip(reason string) func(context.Context) (bool, string) {
	return func(context.Context) (bool, string) { return true, reason }
}

func untilState(until string) flow.State {
	switch until {
	case "applied":
		return flow.Applied
	case "rolledOut":
		return flow.RolledOut
	}
	return flow.Healthy
}

// runBundles applies the bundles of a node side by side, then waits for all of them.
func (r *run) runBundles(ctx context.Context, bundles []render.Bundle, lateFacts map[string]bool, report func(flow.State, string)) error {
	waits := make([]waiter, len(bundles))
	group, gctx := errgroup.WithContext(ctx)
	var problems = make([]error, len(bundles))
	for i, b := range bundles {
		group.Go(func() error {
			problems[i] = panics.Safe(func() (err error) {
				if lateFacts[b.Component] {
					waits[i], err = r.applyLate(gctx, b)
				} else {
					waits[i], err = r.applyBundle(gctx, b)
				}
				return err
			})()
			return nil
		})
	}
	_ = group.Wait()
	if err := errors.Join(problems...); err != nil {
		return err
	}
	report(flow.Applied, wrote(waits))
	if err := r.waitAll(ctx, waits, false, report); err != nil {
		return err
	}
	report(flow.Healthy, "")
	return r.waitAll(ctx, waits, true, report)
}

// wrote says what a step has written; empty when nothing was to be changed.
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

// lateRounds bounds how often a bundle is applied because applying it made a fact known.
const lateRounds = 3

// applyLate applies a bundle whose component reads facts that change while the flow runs. Applying it may itself make
// one known (the address of its own Service): then it is rendered and applied again.
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
	options := r.Render
	in.Facts, options.Only = now, []string{b.Component}
	result, err := unheard(ctx, func() (render.Result, error) { return render.Render(in, options) })
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

// task runs a registered task of the flow.
func (r *run) task(ctx context.Context, name string) error {
	switch name {
	case "init-virtual":
		return r.virtualReady(ctx)
	case "references":
		return r.referencesThere(false)
	case "dashboard-references":
		return r.referencesThere(true)
	}
	return fmt.Errorf("task %q of the flow is not registered: known are init-virtual, references and dashboard-references", name)
}
