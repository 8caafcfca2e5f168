package owner

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/apply/flow"
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
	for _, n := range definition.Nodes {
		var present []render.Bundle
		for _, name := range n.Bundles {
			if b, ok := bundles[name]; ok {
				present = append(present, b)
			}
		}
		node := flow.Node{ID: n.ID, Title: n.ID, Timeout: n.Timeout}
		for id, until := range n.After {
			node.Needs = append(node.Needs, flow.Edge{ID: id, Until: untilState(until)})
		}
		switch {
		case !n.If:
			node.SkipIf = skip("not wanted by the declaration")
		case n.Task == "" && len(n.Bundles) > 0 && len(present) == 0:
			node.SkipIf = skip("disabled")
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
			if lateFacts[b.Component] {
				var err error
				if b, err = r.renderAgain(gctx, b); err != nil {
					problems[i] = err
					return nil
				}
			}
			waits[i], problems[i] = r.applyBundle(gctx, b)
			return nil
		})
	}
	_ = group.Wait()
	if err := errors.Join(problems...); err != nil {
		return err
	}
	report(flow.Applied, "")
	if err := r.waitAll(ctx, waits, false, report); err != nil {
		return err
	}
	report(flow.Healthy, "")
	return r.waitAll(ctx, waits, true, report)
}

// renderAgain renders a component whose facts may have changed since the start.
func (r *run) renderAgain(ctx context.Context, b render.Bundle) (render.Bundle, error) {
	in := r.owner.Input
	extensions, err := r.extensionFacts(ctx, r.owner)
	if err != nil {
		return b, err
	}
	in.Facts.Extensions = extensions
	options := r.Render
	options.Only = []string{b.Component}
	result, err := render.Render(in, options)
	if err != nil {
		return b, fmt.Errorf("render %s again: %w", b.Name, err)
	}
	for _, fresh := range result.Bundles {
		if fresh.Name == b.Name {
			r.owner.replace(fresh)
			return fresh, nil
		}
	}
	return b, fmt.Errorf("bundle %s is not rendered any more", b.Name)
}

func (o *Owner) replace(b render.Bundle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.bundles {
		if o.bundles[i].Name == b.Name {
			o.bundles[i] = b
		}
	}
}

// task runs a registered task of the flow.
func (r *run) task(ctx context.Context, name string) error {
	switch name {
	case "init-virtual":
		return r.virtualReady(ctx)
	}
	return fmt.Errorf("task %q of the flow is not registered: known is init-virtual", name)
}
