// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
)

// TestPlanReportsNodeChanges: a dry run reports whose nodes change, like a comparison of revisions,
// for a Worker that changes, is deleted, or is held.
func TestPlanReportsNodeChanges(t *testing.T) {
	f := newFixture(t)
	workers := f.object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workers.NS.gardener.cloud}
spec:
  group: NS.gardener.cloud
  scope: Namespaced
  names: {plural: workers, singular: worker, kind: Worker}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)
	worker := func(name, machine string) *unstructured.Unstructured {
		return f.object(`{apiVersion: NS.gardener.cloud/v1, kind: Worker, metadata: {name: ` + name + `, namespace: NS}, spec: {pools: [{name: w, maximum: 4, machineType: ` + machine + `}]}}`)
	}
	f.mustApply(f.set(workers, worker("a", "small"), worker("b", "small"), worker("c", "small")))
	p, err := f.e.Plan(f.ctx, f.c, f.set(workers, worker("a", "large"), worker("b", "small")), f.inv, ApplyOptions{})
	require.NoError(t, err)
	pools := map[string][]change.PoolChange{}
	for _, item := range p.Items {
		pools[item.Object.Name] = item.Pools
	}
	assert.Equal(t, map[string][]change.PoolChange{
		"a": {{Pool: "w", Effect: change.NodesReplaced, MaxNodes: 4, Surge: "1", Unavailable: "0", Causes: []string{"machine type small → large"}}},
		"c": {{Pool: "w", Effect: change.NodesDeleted, MaxNodes: 4, Causes: []string{"the pool is removed"}}},
	}, pools)
	text, _, _ := strings.Cut(plan.Markdown(p, plan.MaxMarkdown), "<details>")
	assert.Contains(t, text, "#### Nodes are replaced (up to 4, in 1 shoot): machine type small → large")
	assert.Equal(t, 1, strings.Count(text, "machine type small → large"), "not among what else happens: %s", text)

	p, err = f.e.Plan(f.ctx, f.c, f.set(workers, worker("a", "small"), worker("b", "small")), f.inv, ApplyOptions{ApprovePrune: func(entries []Entry) []HeldObject {
		return []HeldObject{{Ref: entries[0].Ref, Reason: change.Reason{Detail: "delete is held: kind Worker is protected"}}}
	}})
	require.NoError(t, err)
	require.Len(t, p.Items, 1)
	assert.Equal(t, change.Hold, p.Items[0].Action)
	assert.Equal(t, []string{"deletes the machines of the cluster"}, p.Items[0].Consequences)
	require.Len(t, plan.NodeChanges(p), 1)
	assert.Equal(t, []string{"the pool is removed", "which is held"}, plan.NodeChanges(p)[0].Causes)
}
