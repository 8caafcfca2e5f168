// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pergola-dev/pergola/apply"
)

// metrics are the metrics of a Manager. Values that are counted elsewhere are read at each scrape.
type metrics struct {
	durations *prometheus.HistogramVec
	objects   *prometheus.CounterVec
	drift     *prometheus.CounterVec
}

// Results of a run for a ManagedResource.
const (
	resultApplied = "applied"
	resultJudged  = "judged"
	resultPending = "pending"
	resultFailed  = "failed"
)

func newMetrics() *metrics {
	return &metrics{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pergola_managedresource_reconcile_duration_seconds",
			Help:    "Duration of the reconciliation of a ManagedResource, by result: applied, judged (only health), pending (something is still being deleted), failed.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"result"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_managedresource_objects_total",
			Help: "Objects of ManagedResources, by action; unchanged ones are not counted."}, []string{"action"}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_managedresource_drift_total",
			Help: "Changes of applied objects by others, by kind."}, []string{"kind"}),
	}
}

func (m *metrics) observeDuration(result string, took time.Duration) {
	m.durations.WithLabelValues(result).Observe(took.Seconds())
}

func (m *metrics) countActions(result *apply.Result) {
	if result == nil {
		return
	}
	for _, o := range result.Objects {
		if o.Action != apply.Unchanged {
			m.objects.WithLabelValues(string(o.Action)).Inc()
		}
	}
}

// Describe implements prometheus.Collector.
func (m *Manager) Describe(out chan<- *prometheus.Desc) {
	m.metrics.durations.Describe(out)
	m.metrics.objects.Describe(out)
	m.metrics.drift.Describe(out)
	out <- conditionsDesc
	out <- contestedDesc
	out <- requestsDesc
}

var (
	conditionsDesc = prometheus.NewDesc("pergola_managedresources", "ManagedResources of the class by the status of a condition.", []string{"condition", "status"}, nil)
	contestedDesc  = prometheus.NewDesc("pergola_managedresource_contested_objects", "Objects that others repeatedly change back.", nil, nil)
	requestsDesc   = prometheus.NewDesc("pergola_api_requests_total", "Requests to an API server by verb.", []string{"cluster", "verb"}, nil)
)

// Collect implements prometheus.Collector.
func (m *Manager) Collect(out chan<- prometheus.Metric) {
	m.metrics.durations.Collect(out)
	m.metrics.objects.Collect(out)
	m.metrics.drift.Collect(out)
	for c, n := range m.conditionCounts() {
		out <- prometheus.MustNewConstMetric(conditionsDesc, prometheus.GaugeValue, float64(n), c.condition, c.status)
	}
	out <- prometheus.MustNewConstMetric(contestedDesc, prometheus.GaugeValue, float64(m.writeConflicts.countObjects()))
	for name, cluster := range map[string]*apply.Cluster{m.options.Source.Name(): m.options.Source, m.options.Target.Name(): m.options.Target} {
		for verb, n := range cluster.Requests() {
			out <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n), name, verb)
		}
	}
}

type conditionStatus struct{ condition, status string }

// conditionCounts counts the ManagedResources of the class by condition, from the live cache.
func (m *Manager) conditionCounts() map[conditionStatus]int {
	out := map[conditionStatus]int{}
	if m.Ready() != nil {
		return out
	}
	for _, key := range m.secretCache.managedResources() {
		mr, err := m.reconciler.Read(context.Background(), key.Namespace, key.Name)
		if err != nil || !m.reconciler.IsResponsible(mr) {
			continue
		}
		for _, c := range mr.Status.Conditions {
			out[conditionStatus{string(c.Type), string(c.Status)}]++
		}
	}
	return out
}

// countObjects returns the number of objects that are fought over.
func (f *writeConflicts) countObjects() int {
	f.mu.Lock()
	keys := maps.Clone(f.objects)
	f.mu.Unlock()
	n := 0
	for key := range keys {
		n += f.dropEndedConflicts(key)
	}
	return n
}
