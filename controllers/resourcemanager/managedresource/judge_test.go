// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/health/custom"
)

// TestHealthRules: custom rules take precedence over those of the kinds, and kinds without a
// rule are judged unless existence suffices.
func TestHealthRules(t *testing.T) {
	rules, err := custom.Compile([]custom.Rule{{APIGroup: "example.org", Kind: "Database", Healthy: `self.status.phase == "Running"`, Message: `"phase " + self.status.phase`}})
	require.NoError(t, err)
	object := func(kind string, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "b"}, "status": status,
		}}
	}
	stalled := map[string]any{"conditions": []any{map[string]any{"type": "Stalled", "status": "True", "message": "stuck"}}}

	v := Judge{}.JudgeLive(object("Database", map[string]any{"phase": "Failed"}))
	assert.True(t, v.Healthy, "nothing is known of the kind")
	for _, only := range []bool{false, true} {
		judge := Judge{Rules: rules, ExistenceOnly: only}
		v = judge.JudgeLive(object("Database", map[string]any{"phase": "Failed"}))
		assert.False(t, v.Healthy)
		assert.Equal(t, []string{"DatabaseUnhealthy", "phase Failed"}, []string{v.Reason, v.Message})
		assert.True(t, judge.JudgeLive(object("Database", map[string]any{"phase": "Running"})).Healthy)
		assert.Equal(t, only, judge.JudgeLive(object("Cache", stalled)).Healthy)
	}
}
