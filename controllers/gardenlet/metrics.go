// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	runs          *prometheus.CounterVec
	durations     *prometheus.HistogramVec
	drift         *prometheus.CounterVec
	lastHeartbeat prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_gardenlet_convergences_total",
			Help: "Finished reconciliations of Seeds and Shoots, by kind and result: converged, failed."}, []string{"kind", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pergola_gardenlet_convergence_duration_seconds",
			Help: "Duration of the reconciliation of a Seed or Shoot, including the wait for health.", Buckets: []float64{.1, .5, 1, 5, 15, 60, 180, 600, 1800}}, []string{"kind"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_gardenlet_drift_repairs_total",
			Help: "Repairs of objects on the seed that others changed, by result: repaired, failed, left (held, or declared differently now)."}, []string{"result"}),
		lastHeartbeat: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pergola_gardenlet_heartbeat_timestamp_seconds",
			Help: "Time of the last heartbeat to the virtual garden."}),
	}
}

func (m *metrics) countRun(kind string, err error) {
	result := "converged"
	if err != nil {
		result = "failed"
	}
	m.runs.WithLabelValues(kind, result).Inc()
}

func (m *metrics) observeDuration(kind string, d time.Duration) {
	m.durations.WithLabelValues(kind).Observe(d.Seconds())
}

func (m *metrics) countRepair(result string) { m.drift.WithLabelValues(result).Inc() }

// ownersDesc describes the owner counts, which are computed when they are collected.
func ownersDesc() *prometheus.Desc {
	return prometheus.NewDesc("pergola_gardenlet_owners", "Seeds and Shoots of this gardenlet, by kind and state: waiting, converged, failing, left-alone.", []string{"kind", "state"}, nil)
}

func settingsDesc() *prometheus.Desc {
	return prometheus.NewDesc("pergola_gardenlet_settings_up_to_date", "1 if the latest published settings are in use.", nil, nil)
}

// Describe implements prometheus.Collector.
func (g *Gardenlet) Describe(out chan<- *prometheus.Desc) {
	g.services.metrics.runs.Describe(out)
	g.services.metrics.durations.Describe(out)
	g.services.metrics.drift.Describe(out)
	g.services.metrics.lastHeartbeat.Describe(out)
	out <- ownersDesc()
	out <- settingsDesc()
}

// Collect implements prometheus.Collector.
func (g *Gardenlet) Collect(out chan<- prometheus.Metric) {
	g.services.metrics.runs.Collect(out)
	g.services.metrics.durations.Collect(out)
	g.services.metrics.drift.Collect(out)
	g.services.metrics.lastHeartbeat.Collect(out)
	type place struct{ kind, state string }
	counts := map[place]int{}
	for id, status := range g.fleet.Statuses() {
		kind, _, _ := strings.Cut(id, " ")
		counts[place{kind, string(status.State)}]++
	}
	g.mu.Lock()
	for id := range g.eventHistory.unmanagedOwners {
		kind, _, _ := strings.Cut(id, " ")
		counts[place{kind, "left-alone"}]++
	}
	upToDate := 0.0
	if g.publication.settings != nil && g.publication.problem == nil {
		upToDate = 1
	}
	g.mu.Unlock()
	for p, n := range counts {
		out <- prometheus.MustNewConstMetric(ownersDesc(), prometheus.GaugeValue, float64(n), p.kind, p.state)
	}
	out <- prometheus.MustNewConstMetric(settingsDesc(), prometheus.GaugeValue, upToDate)
}
