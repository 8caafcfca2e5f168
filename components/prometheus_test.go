// SPDX-License-Identifier: Apache-2.0

package components_test

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// testPrometheus is a Prometheus that evaluates the rules of one object of the catalogue, minute by
// minute of a test clock. Storage, engine and rule groups are Prometheus's own.
type testPrometheus struct {
	t       *testing.T
	db      *teststorage.TestStorage
	query   rules.QueryFunc
	groups  map[string]*rules.Group
	now     time.Time
	scraped map[string]bool
}

// newServer returns a server with the rules of a PrometheusRule.
func newServer(t *testing.T, rule string, now time.Time) *testPrometheus {
	t.Helper()
	file := filepath.Join(t.TempDir(), rule+".yaml")
	eachObject(t, "PrometheusRule", func(_ string, o object) {
		if o.Metadata.Name == rule {
			text, err := yaml.Marshal(&o.Spec)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
		}
	})
	s := &testPrometheus{t: t, db: teststorage.New(t), now: now, scraped: map[string]bool{}}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	s.query = rules.EngineQueryFunc(engine, s.db)
	manager := rules.NewManager(&rules.ManagerOptions{
		Context: t.Context(), QueryFunc: s.query, Appendable: s.db, Queryable: s.db, Logger: slog.New(slog.DiscardHandler),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	var errs []error
	s.groups, errs = manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, file)
	require.Empty(t, errs)
	require.NotEmpty(t, s.groups)
	return s
}

// advance scrapes these series every minute, ends series that no longer exist, and evaluates the
// rules. Rules count minutes: groups with another interval would count wrong.
func (s *testPrometheus) advance(n int, series map[string]float64) {
	s.t.Helper()
	for range n {
		s.now = s.now.Add(time.Minute)
		app := s.db.Appender(s.t.Context())
		for name := range s.scraped {
			if _, still := series[name]; !still {
				s.appendSample(app, name, math.Float64frombits(value.StaleNaN))
				delete(s.scraped, name)
			}
		}
		for name, v := range series {
			s.appendSample(app, name, v)
			s.scraped[name] = true
		}
		require.NoError(s.t, app.Commit())
		for _, g := range s.groups {
			require.Equal(s.t, time.Minute, g.Interval(), g.Name())
			g.Eval(s.t.Context(), s.now)
			for _, r := range g.Rules() {
				require.NoError(s.t, r.LastError(), "%s: %s", s.now, r)
			}
		}
	}
}

// advanceUntil runs until a time, which is not included.
func (s *testPrometheus) advanceUntil(end time.Time, series map[string]float64) {
	s.t.Helper()
	s.advance(int(end.Sub(s.now)/time.Minute)-1, series)
}

// stopFor stops the server for some minutes: no scrape, no evaluation, no end of series.
func (s *testPrometheus) stopFor(minutes int) {
	s.now = s.now.Add(time.Duration(minutes) * time.Minute)
}

// addSample adds a sample of the past.
func (s *testPrometheus) addSample(at time.Time, name string, v float64) {
	s.t.Helper()
	app := s.db.Appender(s.t.Context())
	_, err := app.Append(0, s.parseLabels(name), at.UnixMilli(), v)
	require.NoError(s.t, err)
	require.NoError(s.t, app.Commit())
}

func (s *testPrometheus) appendSample(app storage.Appender, name string, v float64) {
	s.t.Helper()
	_, err := app.Append(0, s.parseLabels(name), s.now.UnixMilli(), v)
	require.NoError(s.t, err)
}

func (s *testPrometheus) parseLabels(name string) labels.Labels {
	s.t.Helper()
	metric, err := parser.NewParser(parser.Options{}).ParseMetric(name)
	require.NoError(s.t, err, name)
	return metric
}

// queryAll returns the result of a query.
func (s *testPrometheus) queryAll(query string) promql.Vector {
	s.t.Helper()
	found, err := s.query(s.t.Context(), query, s.now)
	require.NoError(s.t, err, query)
	return found
}

// requireValues checks the values of queries, each with one series.
func (s *testPrometheus) requireValues(values map[string]float64) {
	s.t.Helper()
	for query, want := range values {
		found := s.queryAll(query)
		require.Len(s.t, found, 1, "%s: %s", s.now, query)
		require.InDelta(s.t, want, found[0].F, 1e-9, "%s: %s", s.now, query)
	}
}

// requireEmpty checks that the queries find nothing.
func (s *testPrometheus) requireEmpty(queries ...string) {
	s.t.Helper()
	for _, query := range queries {
		require.Empty(s.t, s.queryAll(query), "%s: %s", s.now, query)
	}
}
