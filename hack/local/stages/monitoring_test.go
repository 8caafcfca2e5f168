// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// TestMonitoringStages checks that one Stage gives a Prometheus the status that health checks
// need, and that afterwards no Stage matches.
func TestMonitoringStages(t *testing.T) {
	type m = map[string]any
	renderer := gotpl.NewRenderer(gotpl.FuncMap{"Now": func() string { return "2026-01-01T00:00:00Z" }})
	done := func(generation, replicas float64, status, message string) m {
		return m{
			"availableReplicas": replicas,
			"conditions":        []any{m{"type": "Available", "status": status, "message": message, "observedGeneration": generation, "lastTransitionTime": "2025-01-01T00:00:00Z"}},
		}
	}
	fail := m{"local.pergola.dev/fail": "no: \"disk\""}
	for name, test := range map[string]struct {
		annotations, status m
		replicas            any
		want, available     string
		count               float64
	}{
		"new":             {nil, nil, 2.0, "available", "True", 2},
		"one by default":  {nil, nil, nil, "available", "True", 1},
		"none":            {nil, nil, 0.0, "available", "True", 0},
		"new generation":  {nil, done(1, 2, "True", ""), 2.0, "available", "True", 2},
		"more replicas":   {nil, done(2, 1, "True", ""), 2.0, "available", "True", 2},
		"done":            {nil, done(2, 2, "True", ""), 2.0, "", "", 0},
		"made to fail":    {fail, done(2, 2, "True", ""), 2.0, "fail", "False", 0},
		"has failed":      {fail, done(2, 0, "False", "no: \"disk\""), 2.0, "", "", 0},
		"another failure": {fail, done(2, 0, "False", "other"), 2.0, "fail", "False", 0},
		"recovers":        {nil, done(2, 0, "False", "other"), 2.0, "available", "True", 2},
	} {
		for _, kind := range []string{"Prometheus", "Alertmanager"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				object := m{"kind": kind, "metadata": m{"generation": 2.0, "annotations": test.annotations}, "spec": m{}}
				if test.replicas != nil {
					object["spec"] = m{"replicas": test.replicas}
				}
				if test.status != nil {
					object["status"] = test.status
				}
				prefix := map[string]string{"Prometheus": "monitoring-prometheus-", "Alertmanager": "monitoring-alertmanager-"}[kind]
				if test.want == "" {
					assert.Empty(t, matchingStages(t, kind, object))
					return
				}
				require.Equal(t, []string{prefix + test.want}, matchingStages(t, kind, object))
				out, err := renderer.ToJSON(template(t, prefix+test.want), object)
				require.NoError(t, err)
				status := m{}
				require.NoError(t, json.Unmarshal(out, &status))
				object["status"] = status
				assert.Empty(t, matchingStages(t, kind, object), "one patch is enough")
				assert.InDelta(t, test.count, status["availableReplicas"], 0)
				available := status["conditions"].([]any)[0].(m)
				assert.Equal(t, test.available, available["status"])
				if test.want == "fail" {
					assert.Equal(t, "no: \"disk\"", available["message"])
				}
			})
		}
	}
}
