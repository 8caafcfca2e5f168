// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/expression"
)

// TestStagesAreValid decodes every Stage as kwok does: no unknown field, every query compiles.
func TestStagesAreValid(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	names := map[string]bool{}
	for _, stage := range all {
		t.Run(stage.Name, func(t *testing.T) {
			assert.False(t, names[stage.Name], "two stages of one name")
			names[stage.Name] = true
			data, err := json.Marshal(stage.Object)
			require.NoError(t, err)
			assert.NotContains(t, string(data), "$(", "placeholders are replaced")
			var typed v1alpha1.Stage
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&typed))
			require.NotNil(t, typed.Spec.Selector)
			for _, match := range typed.Spec.Selector.MatchExpressions {
				_, err := expression.NewQuery(queryOf(match))
				assert.NoError(t, err, queryOf(match))
			}
		})
	}
}

func TestLoadExpandsKinds(t *testing.T) {
	all, err := Load()
	require.NoError(t, err)
	kinds := map[string]string{}
	for _, stage := range all {
		kinds[stage.Name] = stage.GroupVersion + " " + stage.Kind
	}
	for name, want := range map[string]string{
		"monitoring-prometheus-available": "monitoring.coreos.com/v1 Prometheus", "monitoring-alertmanager-available": "monitoring.coreos.com/v1 Alertmanager",
		"monitoring-prometheus-fail": "monitoring.coreos.com/v1 Prometheus", "monitoring-alertmanager-fail": "monitoring.coreos.com/v1 Alertmanager",
	} {
		assert.Equal(t, want, kinds[name], name)
	}
}

// matchingStages returns the names of the Stages whose selector matches the object.
func matchingStages(t *testing.T, kind string, object any) []string {
	t.Helper()
	all, err := Load()
	require.NoError(t, err)
	var names []string
	for _, stage := range all {
		if stage.Kind != kind {
			continue
		}
		data, err := json.Marshal(stage.Object)
		require.NoError(t, err)
		var typed v1alpha1.Stage
		require.NoError(t, json.Unmarshal(data, &typed))
		query, err := expression.NewQuery(queryOf(typed.Spec.Selector.MatchExpressions[0]))
		require.NoError(t, err)
		results, err := query.Execute(t.Context(), object)
		require.NoError(t, err)
		if slices.Contains(results, any(true)) {
			names = append(names, stage.Name)
		}
	}
	return names
}

func template(t *testing.T, name string) string {
	t.Helper()
	all, err := Load()
	require.NoError(t, err)
	for _, stage := range all {
		if stage.Name == name {
			steps := stage.Object["spec"].(map[string]any)["steps"].([]any)
			return steps[0].(map[string]any)["patch"].(map[string]any)["template"].(string)
		}
	}
	require.FailNow(t, "no such stage", name)
	return ""
}

// queryOf returns the query from the field that every version of kwok has; the newer field is
// equal.
func queryOf(match v1alpha1.MatchExpression) string {
	//lint:ignore SA1019 our Stages are written with it
	return match.Key
}
