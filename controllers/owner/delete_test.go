// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

// TestDeletionFlowOrder checks that the flow of the catalogue deletes nothing until the virtual
// garden is known to be unused, and common dependencies last.
func TestDeletionFlowOrder(t *testing.T) {
	in := render.Input{Owner: render.Owner{Kind: Garden, Name: "g", ControlPlaneNamespace: "garden"}, Objects: map[string]map[string]any{Garden: {
		"spec": map[string]any{"runtimeCluster": map[string]any{"networking": map[string]any{"pods": []any{"10.1.0.0/16"}}}},
	}}}
	definition, err := render.LoadFlow(components.FS, "delete", in)
	require.NoError(t, err)
	end := &flowSteps{run: &run{reconciler: &Reconciler{}, owner: &ownerSession{Owner: Owner{Input: in}}}, live: &unstructured.Unstructured{}}
	graph, err := end.buildGraph(definition)
	require.NoError(t, err)
	require.NoError(t, orderAfterState(definition, settingsByKind[Garden]))
	guarded, err := end.buildGraph(definition)
	require.NoError(t, err)
	assert.Equal(t, stepEdges(graph), stepEdges(guarded), "the flow says so by itself")
	order, err := graph.Order()
	require.NoError(t, err)
	needs := map[string][]string{}
	for _, id := range order { // the needs of a step come before it
		for _, n := range graph.Nodes {
			if n.ID != id {
				continue
			}
			for _, e := range n.Needs {
				needs[id] = append(append(needs[id], e.ID), needs[e.ID]...)
			}
		}
	}
	for _, n := range definition.Nodes {
		if n.ID != "unused" {
			assert.Contains(t, needs[n.ID], "unused", n.ID)
		}
		last := n.ID == "garden-namespace" || slices.Contains(needs[n.ID], "garden-namespace") || n.ID == "secrets" || n.ID == "gardener-resource-manager" || strings.HasPrefix(n.ID, "crds-") || slices.Contains(needs["gardener-resource-manager"], n.ID)
		assert.True(t, last, "the manager of its objects goes before %s", n.ID)
	}
	for _, id := range []string{"etcd-main", "etcd-events", "virtual-client"} {
		assert.Contains(t, needs[id], "kube-apiserver", id)
	}
	assert.Contains(t, needs["kube-apiserver"], "no-virtual-resources")
	for _, id := range []string{"gardener-admission-controller", "gardener-admission-controller-virtual", "garden-api", "garden-system-virtual"} {
		assert.Contains(t, needs[id], "gardener-admission-controller-webhooks", "nobody would answer them while %s goes", id)
	}
	assert.Equal(t, []string{"garden-namespace", "inventories", "namespace-labels", "reference-finalizers", "extension-finalizers"}, order[len(order)-5:])

	for i := range definition.Nodes {
		if definition.Nodes[i].ID == "former" {
			definition.Nodes[i].After = nil
		}
	}
	require.NoError(t, orderAfterState(definition, settingsByKind[Garden]))
	guarded, err = end.buildGraph(definition)
	require.NoError(t, err)
	assert.Equal(t, stepEdges(graph), stepEdges(guarded), "whatever a catalogue says")
	for _, name := range append(settingsByKind[Garden].deletionTasks, stateUnused) {
		want := "the flow of deletion has no node for " + name + ": nothing is deleted without it"
		nodes := slices.Clone(definition.Nodes)
		i := slices.IndexFunc(nodes, func(n render.FlowNode) bool { return n.Name == name })
		nodes[i].If = false
		require.EqualError(t, orderAfterState(render.Flow{Nodes: nodes}, settingsByKind[Garden]), want)
		require.EqualError(t, orderAfterState(render.Flow{Nodes: slices.Delete(nodes, i, i+1)}, settingsByKind[Garden]), want)
	}
}

// stepEdges returns the needs of the steps of a graph.
func stepEdges(g flow.Graph) map[string][]flow.Edge {
	out := map[string][]flow.Edge{}
	for _, n := range g.Nodes {
		out[n.ID] = n.Needs
	}
	return out
}

// TestInvalidFlowsFail checks that an invalid flow fails before its first step, and that the error
// lists the alternatives.
func TestInvalidFlowsFail(t *testing.T) {
	deletion, reconciliation := &flowSteps{live: &unstructured.Unstructured{}}, &flowSteps{rendered: map[string]render.Bundle{}}
	for name, c := range map[string]struct {
		of   *flowSteps
		node render.FlowNode
		want string
	}{
		"unknown state": {deletion, render.FlowNode{Verb: render.VerbAwait, Name: "unusde"}, `there is no state "unusde"; did you mean "unused"?; want one of dashboard-references-exist, no-inventories, no-runtime-resources, ` +
			"no-virtual-resources, own-virtual-resources-only, references-exist, unused, virtual-garden-answers"},
		"unknown task": {reconciliation, render.FlowNode{Verb: render.VerbTask, Name: "x"},
			`there is no task "x"; want one of invalidate-virtual, release-extensions, release-references, remove-secrets, yield-namespace`},
		"state of a deletion":        {reconciliation, render.FlowNode{Verb: render.VerbAwait, Name: stateUnused}, "the state unused is only for the deletion of an owner"},
		"removal past the gate":      {reconciliation, render.FlowNode{Verb: render.VerbRemove, Bundles: []string{"b"}}, "only the deletion of an owner removes bundles: the gate decides about all other deletions"},
		"apply without a render":     {deletion, render.FlowNode{Verb: render.VerbApply, Bundles: []string{"b"}}, "a deletion has no rendered bundle to apply"},
		"request without a render":   {deletion, render.FlowNode{Verb: render.VerbRequest, Bundles: []string{"b"}}, "a deletion has no rendered bundle to request"},
		"unknown verb":               {deletion, render.FlowNode{Verb: "scale"}, "no operation performs the verb scale"},
		"a point where others meet":  {deletion, render.FlowNode{}, ""},
		"a state of every operation": {reconciliation, render.FlowNode{Verb: render.VerbAwait, Name: "references-exist"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.of.run = &run{reconciler: &Reconciler{}}
			c.node.ID, c.node.If = "n", true
			_, err := c.of.buildGraph(render.Flow{Owner: Seed, Operation: "o", Nodes: []render.FlowNode{c.node}})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "components/seed/flow.cue: o: node n: "+c.want)
		})
	}
}

// TestOperationOfARequest checks that a request uses the operation of its node, or reconcile
// without a node.
func TestOperationOfARequest(t *testing.T) {
	s := &flowSteps{run: &run{reconciler: &Reconciler{}}, rendered: map[string]render.Bundle{"asked": {Name: "asked"}}}
	assert.Equal(t, "reconcile", s.run.requestedOperation("asked"), "a repair has no flow")
	_, err := s.buildGraph(render.Flow{Nodes: []render.FlowNode{{ID: "n", Verb: render.VerbRequest, Bundles: []string{"asked"}, Operation: "restore", If: true}}})
	require.NoError(t, err)
	assert.Equal(t, "restore", s.run.requestedOperation("asked"))
	assert.Equal(t, "reconcile", s.run.requestedOperation("other"))
}

func TestPreferredGarden(t *testing.T) {
	garden := func(name string, made time.Time, finalizers ...string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made), Finalizers: finalizers}}
	}
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	assert.True(t, isPreferredGarden(garden("b", early), garden("a", late)), "the older one")
	assert.True(t, isPreferredGarden(garden("a", early), garden("b", early)))
	assert.True(t, isPreferredGarden(garden("b", late, finalizerOperator), garden("a", early)), "for which something runs")
	assert.False(t, isPreferredGarden(garden("a", early), garden("b", late, finalizerOperator)))
}

func TestIsConfirmed(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "1": true, "false": false, "": false, "yes": false} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAnnotations(map[string]string{AnnotationConfirmDeletion: value})
		assert.Equal(t, want, IsConfirmed(o), value)
	}
}
