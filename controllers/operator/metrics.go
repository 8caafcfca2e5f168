// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/receiver"
)

// metrics are the operator's metrics, a prometheus.Collector.
type metrics struct {
	syncs       *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	ready       *prometheus.GaugeVec
	stalled     *prometheus.GaugeVec
	suspended   *prometheus.GaugeVec
	held        *prometheus.GaugeVec
	lastApplied *prometheus.GaugeVec
	objects     *prometheus.GaugeVec
	polls       *prometheus.CounterVec
	drift       *prometheus.CounterVec
}

func newMetrics() *metrics {
	labels := []string{"namespace", "landscape"}
	with := func(more ...string) []string { return append(labels[:2:2], more...) }
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		syncs: counter("pergola_landscape_sync_total", "Syncs of a Landscape, by result.", with("result")),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pergola_landscape_sync_duration_seconds",
			Help: "Duration of the syncs of a Landscape.", Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}}, with("result")),
		ready:       gauge("pergola_landscape_ready", "1 if the Landscape is ready, 0 if not, -1 if unknown.", labels),
		stalled:     gauge("pergola_landscape_stalled", "1 if the Landscape cannot recover before a person changes something.", labels),
		suspended:   gauge("pergola_landscape_suspended", "1 while syncing is paused.", labels),
		held:        gauge("pergola_landscape_held_objects", "Deletions and recreations that wait for an approval.", labels),
		lastApplied: gauge("pergola_landscape_last_applied_timestamp_seconds", "When a revision was last applied completely.", labels),
		objects:     gauge("pergola_landscape_objects", "Managed objects, by cluster.", with("cluster")),
		polls:       counter("pergola_source_requests_total", "Requests for the revision of a source by result: success or failure.", with("result")),
		drift:       counter("pergola_landscape_drift_total", "Changes of applied objects by others, by cluster and whether they were repaired.", with("cluster", "repaired")),
	}
}

func (m *metrics) vectors() []prometheus.Collector {
	return []prometheus.Collector{m.syncs, m.durations, m.ready, m.stalled, m.suspended, m.held, m.lastApplied, m.objects, m.polls, m.drift}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.vectors() {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.vectors() {
		c.Collect(out)
	}
}

func (m *metrics) countPoll(key receiver.Key, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.polls.WithLabelValues(key.Namespace, key.Name, result).Inc()
}

func (m *metrics) countSync(key receiver.Key, result landscapev1alpha1.SyncResult, took time.Duration) {
	m.syncs.WithLabelValues(key.Namespace, key.Name, string(result)).Inc()
	m.durations.WithLabelValues(key.Namespace, key.Name, string(result)).Observe(took.Seconds())
}

func (m *metrics) setLastApplied(key receiver.Key, at time.Time) {
	m.lastApplied.WithLabelValues(key.Namespace, key.Name).Set(float64(at.Unix()))
}

func (m *metrics) countDrift(key receiver.Key, cluster string, repaired bool) {
	text := "false"
	if repaired {
		text = "true"
	}
	m.drift.WithLabelValues(key.Namespace, key.Name, cluster, text).Inc()
}

func (m *metrics) setState(key receiver.Key, status landscapev1alpha1.LandscapeStatus, suspended bool) {
	value := -1.0
	if c := condition.Get(status.Conditions, landscapev1alpha1.LandscapeReady); c != nil {
		switch c.Status {
		case gardencorev1beta1.ConditionTrue:
			value = 1
		case gardencorev1beta1.ConditionFalse:
			value = 0
		}
	}
	m.ready.WithLabelValues(key.Namespace, key.Name).Set(value)
	m.stalled.WithLabelValues(key.Namespace, key.Name).Set(gaugeValue(condition.Get(status.Conditions, landscapev1alpha1.LandscapeStalled) != nil))
	m.suspended.WithLabelValues(key.Namespace, key.Name).Set(gaugeValue(suspended))
	m.held.WithLabelValues(key.Namespace, key.Name).Set(float64(len(status.Held)))
	for _, i := range status.Inventory {
		m.objects.WithLabelValues(key.Namespace, key.Name, i.Cluster).Set(float64(i.Objects))
	}
}

// deleteSeries removes the series of a Landscape.
func (m *metrics) deleteSeries(key receiver.Key) {
	labels := prometheus.Labels{"namespace": key.Namespace, "landscape": key.Name}
	for _, v := range []*prometheus.GaugeVec{m.ready, m.stalled, m.suspended, m.held, m.lastApplied, m.objects} {
		v.DeletePartialMatch(labels)
	}
	for _, v := range []*prometheus.CounterVec{m.syncs, m.polls, m.drift} {
		v.DeletePartialMatch(labels)
	}
	m.durations.DeletePartialMatch(labels)
}

func gaugeValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
