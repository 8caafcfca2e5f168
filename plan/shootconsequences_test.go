// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
)

// TestShootConsequences: consequences are complete phrases and name the direction.
func TestShootConsequences(t *testing.T) {
	version := func(o, n any) string {
		return shootConsequence(change.Field{Path: "spec.kubernetes.version", Old: o, New: n})
	}
	assert.Equal(t, "upgrades Kubernetes 1.33.5 → 1.34.1", version("1.33.5", "1.34.1"))
	assert.Equal(t, "upgrades Kubernetes 1.9.0 → 1.10.0", version("1.9.0", "1.10.0"))
	assert.Equal(t, "updates Kubernetes 1.34.1 → 1.34.2", version("1.34.1", "1.34.2"))
	assert.Equal(t, "downgrades Kubernetes 1.34.1 → 1.33.5", version("1.34.1", "1.33.5"))
	assert.Equal(t, "downgrades Kubernetes 1.34.2 → 1.34.1", version("1.34.2", "1.34.1"))

	for how, want := range map[string]string{change.NodesReplaced: "are replaced", change.NodesMaybeReplaced: "may be replaced", change.NodesUpdatedInPlace: "are updated in place"} {
		c := change.PoolChange{Pool: "a", Effect: how, MaxNodes: 5, Causes: []string{"x"}}
		assert.Equal(t, "the nodes of pool a (up to 5) "+want+": x", poolText(c))
		assert.Equal(t, "Nodes "+want+" (up to 5, in 1 shoot): x", nodeGroup{Effect: how, Cause: "x", Nodes: 5, Shoots: 1}.Title())
	}

	old, new := object(t, shootOf("machine: {type: s}", "")), object(t, shootOf("machine: {type: s}", "kubernetes: {kubelet: {cpuManagerPolicy: none}}"))
	pools := PoolChanges(change.Item{Action: change.Change, Object: change.RefOf(old)}, old, new)
	require.Len(t, pools, 1)
	assert.Equal(t, []string{"CPU manager policy of the kubelet not set → none"}, pools[0].Causes)
}
