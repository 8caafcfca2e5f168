// SPDX-License-Identifier: Apache-2.0

package components_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/components"
)

// The cases of the catalogue have its rendered objects, which a golden test compares with the
// rendering: these tests only need the cases.

// object has the needed parts of an object.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     yaml.Node
	Data     map[string]string
}

// eachObject calls do for each object of a kind in the cases of the catalogue.
func eachObject(t *testing.T, kind string, do func(file string, o object)) {
	t.Helper()
	files, err := fs.Glob(components.FS, "*/*/cases/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := 0
	for _, file := range files {
		data, err := fs.ReadFile(components.FS, file)
		require.NoError(t, err)
		if !bytes.Contains(data, []byte("kind: "+kind+"\n")) {
			continue
		}
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		for {
			var o object
			err := decoder.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			if o.Kind == kind {
				found++
				do(file, o)
			}
		}
	}
	require.NotZero(t, found, "no case has a %s", kind)
}

// parseRuleGroups parses the rules of a PrometheusRule as Prometheus does: names, labels,
// durations, expressions and templates.
func parseRuleGroups(t *testing.T, file string, o object) *rulefmt.RuleGroups {
	t.Helper()
	text, err := yaml.Marshal(&o.Spec)
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs, "%s: PrometheusRule %s", file, o.Metadata.Name)
	return groups
}

// recordQuery formats a record as a query: its name and added labels.
func recordQuery(record string, added map[string]string) string {
	if len(added) == 0 {
		return record
	}
	text := make([]string, 0, len(added))
	for _, name := range slices.Sorted(maps.Keys(added)) {
		text = append(text, fmt.Sprintf("%s=%q", name, added[name]))
	}
	return record + "{" + strings.Join(text, ", ") + "}"
}

// TestRecordNamesMatchUpstream checks that readers find all records, and that there are no
// additional ones, which others would rely on.
func TestRecordNamesMatchUpstream(t *testing.T) {
	data, err := os.ReadFile(path.Join("testdata", "records.yaml"))
	require.NoError(t, err)
	var upstream map[string][]string
	require.NoError(t, yaml.Unmarshal(data, &upstream))
	seen := map[string]bool{}
	eachObject(t, "PrometheusRule", func(file string, o object) {
		want, is := upstream[o.Metadata.Name]
		if !is {
			return
		}
		seen[o.Metadata.Name] = true
		records := map[string]bool{}
		for _, g := range parseRuleGroups(t, file, o).Groups {
			for _, r := range g.Rules {
				if r.Record != "" && !strings.HasPrefix(r.Record, "_") {
					records[recordQuery(r.Record, r.Labels)] = true
				}
			}
		}
		for _, name := range want {
			assert.True(t, records[name], "%s: PrometheusRule %s records no %s", file, o.Metadata.Name, name)
			delete(records, name)
		}
		assert.Empty(t, records, "%s: PrometheusRule %s records what upstream's does not", file, o.Metadata.Name)
	})
	for name := range upstream {
		assert.True(t, seen[name], "no case has PrometheusRule %s", name)
	}
}

// seedRecordPattern matches series that the garden gets from the Prometheus instances of seeds.
var seedRecordPattern = regexp.MustCompile(`^((seed|shoot):.+|metering:[a-z_]+:(sum_by_namespace|sum_by_instance_type))$`)

// requireRecordsExist finds series that have names of records but are not recorded.
func requireRecordsExist(t *testing.T, recorded map[string]bool, where string, expr parser.Expr) {
	t.Helper()
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		selector, is := n.(*parser.VectorSelector)
		if is && strings.Contains(selector.Name, ":") {
			assert.True(t, recorded[selector.Name] || seedRecordPattern.MatchString(selector.Name), "%s: nobody records %s", where, selector.Name)
		}
		return nil
	})
}

// recordNames returns the names of all records of the catalogue.
func recordNames(t *testing.T) map[string]bool {
	t.Helper()
	recorded := map[string]bool{}
	eachObject(t, "PrometheusRule", func(file string, o object) {
		for _, g := range parseRuleGroups(t, file, o).Groups {
			for _, r := range g.Rules {
				recorded[r.Record] = true
			}
		}
	})
	return recorded
}

// TestRulesParse: Prometheus accepts all rules of the catalogue, and each record that a rule
// reads is recorded.
func TestRulesParse(t *testing.T) {
	recorded := recordNames(t)
	eachObject(t, "PrometheusRule", func(file string, o object) {
		for _, g := range parseRuleGroups(t, file, o).Groups {
			for _, r := range g.Rules {
				expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
				require.NoError(t, err)
				requireRecordsExist(t, recorded, file+": "+r.Record+r.Alert, expr)
			}
		}
	})
}

var labelValuesPattern = regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)

// TestDashboardQueriesParse: Prometheus accepts the queries of all dashboards. Variables are
// labels of metrics, and panels use no others.
func TestDashboardQueriesParse(t *testing.T) {
	recorded, read := recordNames(t), parser.NewParser(parser.Options{})
	dashboards := 0
	eachObject(t, "ConfigMap", func(file string, o object) {
		if !strings.HasPrefix(o.Metadata.Name, "plutono-dashboards") {
			return
		}
		for name, text := range o.Data {
			var d struct {
				Templating struct {
					List []struct{ Name, Datasource, Query string }
				}
				Panels []struct {
					Title, Datasource string
					Targets           []struct{ Expr string }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(text), &d), "%s: %s", file, name)
			require.NotEmpty(t, d.Panels, "%s: %s", file, name)
			dashboards++
			variables := map[string]bool{"__all": true}
			for _, v := range d.Templating.List {
				where := fmt.Sprintf("%s: %s: variable %s", file, name, v.Name)
				require.True(t, strings.HasPrefix(v.Datasource, "prometheus-"), where)
				parts := labelValuesPattern.FindStringSubmatch(v.Query)
				require.NotNil(t, parts, "%s: %s", where, v.Query)
				expr, err := read.ParseExpr(parts[1])
				require.NoError(t, err, where)
				requireRecordsExist(t, recorded, where, expr)
				variables[v.Name] = true
			}
			for _, p := range d.Panels {
				where := fmt.Sprintf("%s: %s: panel %s", file, name, p.Title)
				require.True(t, strings.HasPrefix(p.Datasource, "prometheus-"), where)
				require.NotEmpty(t, p.Targets, where)
				for _, target := range p.Targets {
					expr, err := read.ParseExpr(target.Expr)
					require.NoError(t, err, where)
					requireRecordsExist(t, recorded, where, expr)
					for _, used := range usedVariables(expr) {
						assert.True(t, variables[used], "%s: the dashboard has no variable %s", where, used)
					}
				}
			}
		}
	})
	assert.GreaterOrEqual(t, dashboards, 8)
}

// usedVariables returns the variables in the matchers of a query.
func usedVariables(expr parser.Expr) []string {
	var out []string
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if selector, is := n.(*parser.VectorSelector); is {
			for _, m := range selector.LabelMatchers {
				if m.Type == labels.MatchRegexp && strings.HasPrefix(m.Value, "$") {
					out = append(out, strings.TrimPrefix(m.Value, "$"))
				}
			}
		}
		return nil
	})
	return out
}
