package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/owner/blocked"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
)

// Annotations by which people confirm that something goes (upstream's).
const (
	AnnotationConfirmDeletion = "confirmation.gardener.cloud/deletion"
	// AnnotationForceDeletion on a Garden that is being deleted gives its virtual garden up where that does not answer. Upstream has it for Shoots.
	AnnotationForceDeletion = "confirmation.gardener.cloud/force-deletion"
)

// IsConfirmed tells whether somebody has confirmed that an object may be deleted.
func IsConfirmed(live *unstructured.Unstructured) bool {
	return isTrue(live.GetAnnotations()[AnnotationConfirmDeletion])
}

func isTrue(value string) bool {
	is, err := strconv.ParseBool(value)
	return err == nil && is
}

// Delete takes down a Garden that is being deleted, in the order of its flow, and lets it go in the end. What it cannot do is in the status, and is gone on
// with by the next call, of whichever process: all that is left is in inventories.
func (r *Reconciler) Delete(ctx context.Context, o *Owner) (*Report, error) {
	status := r.newStatus(o)
	status.deleting = true
	defer status.stop()
	live, err := o.Home.GetLive(ctx, o.Ref)
	if apierrors.IsNotFound(err) {
		return &Report{Owner: o.String()}, nil
	}
	if err != nil {
		return nil, o.Home.Explain(o.Ref, "read", err)
	}
	if live.GetDeletionTimestamp() == nil {
		return nil, fmt.Errorf("%s is not being deleted", o)
	}
	if err := status.start(ctx); err != nil {
		return nil, err
	}
	end := &teardown{run: &run{Reconciler: r, owner: o, status: status, report: &Report{Owner: o.String()}}, live: live}
	err = panics.Safe(func() error { return end.all(ctx) })()
	if err == nil || lost(ctx) {
		return end.report, err
	}
	if r.Hooks.OnOutcome != nil {
		r.Hooks.OnOutcome(ctx, end.report, err)
	}
	final, cancel := inTheEnd(ctx)
	defer cancel()
	if errors.Is(ctx.Err(), context.Canceled) {
		return end.report, errors.Join(err, status.interrupt(final, err))
	}
	return end.report, errors.Join(err, status.finish(final, err))
}

// teardown is one run of the deletion of a Garden.
type teardown struct {
	*run
	// live is the Garden as the run has found it.
	live *unstructured.Unstructured
	// there are the bundles that are in the cluster, last in the flow of reconciliation first.
	there []orphan
	// lost says why the virtual garden is not asked for anything any more: it is gone, or given up; empty while it is.
	lost string
}

func (t *teardown) all(ctx context.Context) error {
	if !IsConfirmed(t.live) {
		return errors.New(t.owner.Home.CommandsHere(fmt.Sprintf("the deletion is not confirmed: nothing is taken down before it is, and it cannot be taken back; to confirm it: kubectl annotate %s %s=true",
			kubectlName(t.owner), AnnotationConfirmDeletion)))
	}
	if err := t.readExtensions(ctx, t.owner); err != nil {
		return err
	}
	definition, err := render.LoadFlow(t.Render.Catalogue, "delete", t.owner.Input)
	if err != nil {
		return err
	}
	if t.there, err = t.orphans(ctx, t.owner, nil); err != nil {
		return err
	}
	graph, err := t.graph(definition)
	if err != nil {
		return err
	}
	t.blocked = blocked.New(graph)
	outcome, err := flow.Run(ctx, graph, flow.Options{Clock: t.Clock, OnEvent: t.event})
	if outcome != nil {
		t.report.Nodes = outcome.Nodes
		t.blocked.Explain(t.report.Nodes)
	}
	if err != nil {
		return err
	}
	return t.letGo(ctx)
}

// graph turns the flow of the catalogue into steps. One whose bundles are not in the cluster is skipped.
func (t *teardown) graph(definition render.Flow) (flow.Graph, error) {
	named, first := map[string]bool{}, ""
	for _, n := range definition.Nodes {
		if n.Task == taskUnused {
			first = n.ID
		}
	}
	var graph flow.Graph
	if first == "" {
		return graph, fmt.Errorf("the flow of deletion has no step with the task %s: nothing is taken down without it", taskUnused)
	}
	for _, n := range definition.Nodes {
		node := flow.Node{ID: n.ID, Title: n.ID, Timeout: t.timeout(n.Timeout)}
		for _, id := range slices.Sorted(maps.Keys(n.After)) {
			node.Needs = append(node.Needs, flow.Edge{ID: id, Until: untilState(n.After[id])})
		}
		if len(node.Needs) == 0 && n.ID != first {
			node.Needs = []flow.Edge{{ID: first, Until: flow.Healthy}} // nothing goes before it is known that nothing is in use
		}
		var present []orphan
		for _, name := range n.Bundles {
			named[name] = true
			if i := slices.IndexFunc(t.there, func(o orphan) bool { return o.bundle.Name == name }); i >= 0 {
				present = append(present, t.there[i])
			}
		}
		switch {
		case !n.If:
			node.SkipIf = skip("not wanted by the declaration")
		case len(n.Bundles) > 0 && len(present) == 0:
			node.SkipIf = skip("not there")
		}
		task := n.Task
		node.Run = func(ctx context.Context, report func(flow.State, string)) error {
			if task != "" && task != taskLeaveObjects {
				if err := t.task(ctx, task, named, report); err != nil {
					return err
				}
			}
			return t.takeDownAll(ctx, present, task == taskLeaveObjects, report)
		}
		graph.Nodes = append(graph.Nodes, node)
	}
	return graph, nil
}

// Tasks of the flow of deletion.
const (
	taskUnused         = "verify-unused"
	taskFormer         = "remove-former-bundles"
	taskInvalidate     = "invalidate-virtual"
	taskVirtualOwn     = "verify-own-virtual-resources"
	taskVirtualNone    = "verify-no-virtual-resources"
	taskRuntimeNone    = "verify-no-runtime-resources"
	taskRemoveSecrets  = "remove-secrets"
	taskLeaveObjects   = "leave-objects"
	knownDeletionTasks = taskUnused + ", " + taskFormer + ", " + taskInvalidate + ", " + taskVirtualOwn + ", " + taskVirtualNone + ", " + taskRuntimeNone + ", " +
		taskRemoveSecrets + " and " + taskLeaveObjects
)

// task runs a registered task. named are the bundles that steps of the flow take down.
func (t *teardown) task(ctx context.Context, name string, named map[string]bool, report func(flow.State, string)) error {
	switch name {
	case taskUnused:
		return t.verifyUnused(ctx, report)
	case taskFormer:
		var former []orphan
		for _, o := range t.there {
			if !named[o.bundle.Name] {
				former = append(former, o)
			}
		}
		return t.takeDownAll(ctx, former, false, report)
	case taskInvalidate:
		t.invalidate()
		return nil
	case taskVirtualOwn:
		return t.awaitOnly(ctx, virtualClass, true, report)
	case taskVirtualNone:
		return t.awaitOnly(ctx, virtualClass, false, report)
	case taskRuntimeNone:
		return t.awaitOnly(ctx, runtimeClass, false, report)
	case taskRemoveSecrets:
		return t.removeSecrets(ctx)
	}
	return fmt.Errorf("task %q of the flow of deletion is not registered: known are %s", name, knownDeletionTasks)
}

// begins is called when nothing is in the way any more: from now on nothing is repaired, judged or requested for the components.
func (t *teardown) begins() {
	t.Tokens.Stop(t.owner.ControlPlane())
	t.owner.note(func(s *State) { s.ended("the Garden is being deleted") })
}
