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

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

// In the flow of the catalogue nothing goes before it is known that the virtual garden is not in use, and what everything needs goes last.
func TestOrderOfTheEnd(t *testing.T) {
	in := render.Input{Owner: render.Owner{Kind: Garden, Name: "g", ControlPlaneNamespace: "garden"}, Objects: map[string]map[string]any{Garden: {
		"spec": map[string]any{"runtimeCluster": map[string]any{"networking": map[string]any{"pods": []any{"10.1.0.0/16"}}}},
	}}}
	definition, err := render.LoadFlow(components.FS, "delete", in)
	require.NoError(t, err)
	end := &teardown{run: &run{Reconciler: &Reconciler{}, owner: &Owner{Input: in}}}
	graph, err := end.graph(definition)
	require.NoError(t, err)
	order, err := graph.Order()
	require.NoError(t, err)
	needs := map[string][]string{}
	for _, id := range order { // what it needs comes before it
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
		last := n.ID == "garden-namespace" || n.ID == "secrets" || n.ID == "gardener-resource-manager" || strings.HasPrefix(n.ID, "crds-") || slices.Contains(needs["gardener-resource-manager"], n.ID)
		assert.True(t, last, "the manager of its objects goes before %s", n.ID)
	}
	for _, id := range []string{"etcd-main", "etcd-events", "virtual-client"} {
		assert.Contains(t, needs[id], "kube-apiserver", id)
	}
	assert.Contains(t, needs["kube-apiserver"], "no-virtual-resources")
	for _, id := range []string{"gardener-admission-controller", "gardener-admission-controller-virtual", "garden-api", "garden-system-virtual"} {
		assert.Contains(t, needs[id], "gardener-admission-controller-webhooks", "nobody would answer them while %s goes", id)
	}
	definition.Nodes = slices.DeleteFunc(definition.Nodes, func(n render.FlowNode) bool { return n.Task == taskUnused })
	_, err = end.graph(definition)
	require.ErrorContains(t, err, taskUnused)
}

func TestWhichGardenCounts(t *testing.T) {
	garden := func(name string, made time.Time, finalizers ...string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made), Finalizers: finalizers}}
	}
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	assert.True(t, goesBefore(garden("b", early), garden("a", late)), "the older one")
	assert.True(t, goesBefore(garden("a", early), garden("b", early)))
	assert.True(t, goesBefore(garden("b", late, finalizerOperator), garden("a", early)), "for which something runs")
	assert.False(t, goesBefore(garden("a", early), garden("b", late, finalizerOperator)))
}

func TestIsConfirmed(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "1": true, "false": false, "": false, "yes": false} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAnnotations(map[string]string{AnnotationConfirmDeletion: value})
		assert.Equal(t, want, IsConfirmed(o), value)
	}
}
