// SPDX-License-Identifier: Apache-2.0

package components_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rules of longterm-sla on the condition of a shoot.

// availabilitySeries has the availability of a shoot's API server, as imported from
// prometheus-garden.
func availabilitySeries(condition float64) map[string]float64 {
	const series = `garden_shoot_condition{project="dev", name="one", condition=%q, operation=%q, instance="a", job="prometheus-garden"}`
	return map[string]float64{
		fmt.Sprintf(series, "APIServerAvailable", "Reconcile"):      condition,
		fmt.Sprintf(series, "SystemComponentsHealthy", "Reconcile"): -condition, // ignored
		fmt.Sprintf(series, "APIServerAvailable", "Create"):         -condition,
	}
}

func answeringSeries() map[string]float64 { return availabilitySeries(1) }
func failingSeries() map[string]float64   { return availabilitySeries(0) }

// failurePercentages returns the percentages of a window for minutes of failure.
func failurePercentages(window string, days, minutes map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for term, failed := range minutes {
		out[fmt.Sprintf(`probe_failure:run:time:total:percent{term=%q, window=%q}`, term, window)] = failed / (days[term] * 24 * 60)
	}
	return out
}

func movingWindows(minutes map[string]float64) map[string]float64 {
	return failurePercentages("moving", map[string]float64{"day": 1, "week": 7, "week4": 28}, minutes)
}

func fixedWindows(daysInMonth float64, minutes map[string]float64) map[string]float64 {
	return failurePercentages("fixed", map[string]float64{"day": 1, "week": 7, "week4": 28, "year_month": daysInMonth}, minutes)
}

// TestFailedTimeInWindows runs from a Sunday to a Tuesday that is the first of December. Days begin
// at midnight, weeks on Monday, months on the first.
func TestFailedTimeInWindows(t *testing.T) {
	sunday := time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC)
	midnight := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	s := newServer(t, "longterm-sla", sunday)
	s.advance(60, answeringSeries())
	s.advance(10, failingSeries())
	s.advanceUntil(midnight, answeringSeries())
	s.requireValues(fixedWindows(30, map[string]float64{"day": 10, "week": 10, "week4": 10, "year_month": 10}))
	s.requireValues(movingWindows(map[string]float64{"day": 10, "week": 10, "week4": 10}))
	for record, index := range map[string]string{"day": "20786", "week": "2968", "week4": "742"} {
		found := s.queryAll("probe_failure:run:" + record)
		require.Len(t, found, 1)
		require.Equal(t, index, found[0].Metric.Get(record))
	}
	require.Equal(t, map[string]string{"__name__": "probe_failure:run:yearmonth", "year": "2026", "month": "11", "project": "dev", "name": "one",
		"condition": "APIServerAvailable", "operation": "Reconcile"}, s.queryAll("probe_failure:run:yearmonth")[0].Metric.Map())
	s.requireValues(map[string]float64{"count(probe_failure:run:time)": 5, `probe_failure:run:time:total{window="moving"}`: 600})

	// Day and week are new; the four weeks (since the 23rd) and the month are not.
	s.advance(1, answeringSeries())
	require.Equal(t, midnight, s.now)
	s.requireValues(fixedWindows(30, map[string]float64{"day": 0, "week": 0, "week4": 10, "year_month": 10}))
	s.requireValues(movingWindows(map[string]float64{"day": 10, "week": 10, "week4": 10}))
	require.Equal(t, "2969", s.queryAll("probe_failure:run:week")[0].Metric.Get("week"))

	s.advanceUntil(midnight.Add(10*time.Hour), answeringSeries())
	s.advance(30, failingSeries())
	s.advanceUntil(midnight.Add(22*time.Hour), answeringSeries())
	s.requireValues(fixedWindows(30, map[string]float64{"day": 30, "week": 30, "week4": 40, "year_month": 40}))
	s.requireValues(movingWindows(map[string]float64{"day": 40, "week": 40, "week4": 40}))

	// A day later the first failure leaves the moving day.
	s.advanceUntil(midnight.Add(23*time.Hour+30*time.Minute), answeringSeries())
	s.requireValues(movingWindows(map[string]float64{"day": 30, "week": 40, "week4": 40}))

	s.advanceUntil(midnight.Add(24*time.Hour+10*time.Minute), answeringSeries())
	s.advance(5, failingSeries())
	s.advance(10, answeringSeries())
	s.requireValues(fixedWindows(31, map[string]float64{"day": 5, "week": 35, "week4": 45, "year_month": 5}))
	s.requireValues(movingWindows(map[string]float64{"day": 35, "week": 45, "week4": 45}))
}

// TestMovingWeeks: moving windows compare with an earlier sum.
func TestMovingWeeks(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := newServer(t, "longterm-sla", now)
	const total = `probe_failure:run:time:total{project="dev", name="one", condition="APIServerAvailable", operation="Reconcile", window="moving"}`
	s.addSample(now.Add(-28*24*time.Hour), total, 30*60)
	s.addSample(now.Add(-7*24*time.Hour), total, 60*60)
	s.addSample(now.Add(-24*time.Hour), total, 90*60)
	s.addSample(now, total, 120*60)
	s.advance(2, answeringSeries())
	s.requireValues(movingWindows(map[string]float64{"day": 30, "week": 60, "week4": 90}))
}

// TestFailedTimeOverGaps: a gap of half an hour without Prometheus, or without metrics of the
// shoot, keeps the sum. After a longer gap the sum starts again, and no window becomes negative.
func TestFailedTimeOverGaps(t *testing.T) {
	for _, c := range []struct {
		about  string
		gap    func(s *testPrometheus)
		failed float64
	}{
		{"Prometheus stands still, shortly", func(s *testPrometheus) { s.stopFor(20) }, 25},
		{"Prometheus stands still for longer", func(s *testPrometheus) { s.stopFor(40) }, 5},
		{"there are no metrics, shortly", func(s *testPrometheus) { s.advance(20, nil) }, 25},
		{"there are no metrics for longer", func(s *testPrometheus) { s.advance(40, nil) }, 5},
	} {
		t.Run(c.about, func(t *testing.T) {
			s := newServer(t, "longterm-sla", time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC))
			s.advance(5, answeringSeries())
			s.advance(20, failingSeries())
			s.advance(5, answeringSeries())
			began := s.now
			c.gap(s)
			s.advance(5, answeringSeries())
			s.advance(5, failingSeries())
			s.advance(2, answeringSeries())
			s.requireValues(movingWindows(map[string]float64{"day": c.failed, "week": c.failed, "week4": c.failed}))
			s.requireValues(fixedWindows(30, map[string]float64{"day": c.failed, "week": c.failed, "week4": c.failed, "year_month": c.failed}))
			// A day later, with the window start before and in the gap, only the failures since
			// count.
			for _, after := range []time.Duration{-time.Minute, 12 * time.Minute} {
				s.advanceUntil(began.Add(24*time.Hour+after), answeringSeries())
				s.requireValues(movingWindows(map[string]float64{"day": 5}))
			}
			s.advance(60, answeringSeries())
			s.requireValues(movingWindows(map[string]float64{"day": 0}))
		})
	}
}

// TestMissedMidnight: past windows are not reported as current ones, even while their
// series still exist.
func TestMissedMidnight(t *testing.T) {
	midnight := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	s := newServer(t, "longterm-sla", midnight.Add(-30*time.Minute))
	s.advance(10, failingSeries())
	s.advanceUntil(midnight.Add(-time.Minute), answeringSeries())
	s.stopFor(3)
	s.advance(1, answeringSeries())
	s.requireValues(fixedWindows(31, map[string]float64{"day": 0, "week": 10, "week4": 10, "year_month": 0}))
	s.requireValues(movingWindows(map[string]float64{"day": 10}))
}
