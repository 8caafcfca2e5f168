// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/deploy"
)

// foreignMetrics come from client_golang, cAdvisor, kube-state-metrics and Prometheus.
var foreignMetrics = []string{
	"container_memory_working_set_bytes", "kube_pod_container_resource_limits", "up",
	"go_goroutines", "go_memstats_heap_inuse_bytes", "process_cpu_seconds_total", "process_resident_memory_bytes",
}

// ownMetrics returns the metric names in the code of the roles.
func ownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	name := regexp.MustCompile(`"(pergola_[a-z_]+)"`)
	out := map[string]bool{}
	for _, dir := range []string{"controllers", "source", "internal"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
				return err
			}
			data, err := os.ReadFile(p)
			for _, found := range name.FindAllSubmatch(data, -1) {
				out[string(found[1])] = true
			}
			return err
		}))
	}
	return out
}

// checkQuery parses a query as Prometheus does, and finds unknown metrics.
func checkQuery(t *testing.T, own map[string]bool, query string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	require.NoError(t, err, query)
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		known := own[selector.Name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known = known || own[strings.TrimSuffix(selector.Name, suffix)]
		}
		for _, f := range foreignMetrics {
			known = known || f == selector.Name
		}
		assert.True(t, known, "no code has the metric %s of %s", selector.Name, query)
		return nil
	})
}

func TestAlerts(t *testing.T) {
	own := ownMetrics(t)
	duration := regexp.MustCompile(`^([0-9]+(ms|s|m|h|d|w))+$`)
	for _, role := range []deploy.Role{deploy.Operator, deploy.Gardenlet} {
		rules := filterKind(renderRole(t, role, fullValues(t)).Objects, "PrometheusRule")
		require.Len(t, rules, 1)
		assert.Contains(t, []string{"garden", "seed"}, rules[0].GetLabels()["prometheus"])
		groups, _, err := unstructured.NestedSlice(rules[0].Object, "spec", "groups")
		require.NoError(t, err)
		list, _, err := unstructured.NestedSlice(groups[0].(map[string]any), "rules")
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(list), 5)
		for _, item := range list {
			rule := item.(map[string]any)
			checkQuery(t, own, rule["expr"].(string))
			assert.NotContains(t, rule["expr"], "%")
			assert.Regexp(t, duration, rule["for"])
			labels, annotations := rule["labels"].(map[string]any), rule["annotations"].(map[string]any)
			assert.Contains(t, []any{"warning", "critical"}, labels["severity"])
			for _, field := range []string{"summary", "description"} {
				text, _ := annotations[field].(string)
				assert.NotEmpty(t, text)
				functions := template.FuncMap{"humanizeDuration": strings.ToUpper, "humanizePercentage": strings.ToUpper}
				_, err := template.New("").Funcs(functions).Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
				assert.NoError(t, err, text)
			}
		}
	}
}

// TestAlertsOfSyncs: every kind of long-lasting sync problem raises an alert.
func TestAlertsOfSyncs(t *testing.T) {
	rules := filterKind(renderRole(t, deploy.Operator, map[string]any{"monitoring": map[string]any{"alerts": true}}).Objects, "PrometheusRule")
	require.Len(t, rules, 1)
	groups, _, err := unstructured.NestedSlice(rules[0].Object, "spec", "groups")
	require.NoError(t, err)
	found := map[string]map[string]any{}
	for _, item := range groups[0].(map[string]any)["rules"].([]any) {
		rule := item.(map[string]any)
		found[rule["alert"].(string)] = rule
	}
	for name, c := range map[string]struct{ within, metric, last string }{
		// A sync may take an hour (spec.timeout) before it fails, so a shorter window of failures
		// means nothing.
		"PergolaLandscapeSyncFailing":  {"[2h]", "pergola_landscape_sync_total", "15m"},
		"PergolaLandscapeStalled":      {"", "pergola_landscape_stalled", "15m"},
		"PergolaLandscapeNotReady":     {"", "pergola_landscape_ready", "15m"},
		"PergolaLandscapeNotApplied":   {"7200", "pergola_landscape_last_applied_timestamp_seconds", "5m"},
		"PergolaLandscapeNeverApplied": {"unless", "pergola_landscape_last_applied_timestamp_seconds", "2h"},
		"PergolaSourceUnreachable":     {"[15m]", "pergola_source_requests_total", "15m"},
	} {
		rule := found[name]
		if assert.NotNil(t, rule, name) {
			assert.Contains(t, rule["expr"], c.metric, name)
			assert.Contains(t, rule["expr"], c.within, name)
			assert.Equal(t, c.last, rule["for"], name)
		}
	}
}

func TestDashboards(t *testing.T) {
	own := ownMetrics(t)
	for _, role := range []deploy.Role{deploy.Operator, deploy.Gardenlet} {
		maps := filterKind(renderRole(t, role, fullValues(t)).Objects, "ConfigMap")
		require.Len(t, maps, 1)
		data, _, err := unstructured.NestedStringMap(maps[0].Object, "data")
		require.NoError(t, err)
		require.Len(t, data, 1)
		var dashboard struct {
			Title, UID string
			Panels     []struct {
				ID                 int
				Title, Description string
				Targets            []struct{ Expr, LegendFormat, RefID string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(data["pergola-"+string(role)+".json"]), &dashboard))
		assert.NotEmpty(t, dashboard.UID)
		ids := map[int]bool{}
		for _, p := range dashboard.Panels {
			assert.False(t, ids[p.ID], "panel %s", p.Title)
			ids[p.ID] = true
			assert.NotEmpty(t, p.Description, p.Title)
			require.NotEmpty(t, p.Targets, p.Title)
			for _, target := range p.Targets {
				checkQuery(t, own, target.Expr)
			}
		}
		assert.GreaterOrEqual(t, len(dashboard.Panels), 8)
	}
}

// TestDashboardHasEveryMetric checks that the dashboard is complete.
func TestDashboardHasEveryMetric(t *testing.T) {
	for role, prefix := range map[deploy.Role]string{deploy.Operator: "pergola_landscape_", deploy.Gardenlet: "pergola_gardenlet_"} {
		text := string(manifest(t, filterKind(renderRole(t, role, fullValues(t)).Objects, "ConfigMap")))
		for name := range ownMetrics(t) {
			if strings.HasPrefix(name, prefix) {
				assert.Contains(t, text, name)
			}
		}
	}
}
