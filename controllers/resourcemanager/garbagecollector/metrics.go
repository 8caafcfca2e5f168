// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pergola-dev/pergola/internal/metrics"
)

// collectorMetrics are the metrics for Prometheus. The age of the last scan is time() minus its
// timestamp.
type collectorMetrics struct {
	deleted                            *prometheus.CounterVec
	failures                           prometheus.Counter
	lastSuccess, objects, unreferenced prometheus.Gauge
}

const metricsPrefix = "pergola_garbage_collector_"

func newMetrics(to prometheus.Registerer) (*collectorMetrics, error) {
	m := &collectorMetrics{
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricsPrefix + "deleted_objects_total",
			Help: "Secrets and ConfigMaps that were deleted because nothing referred to them, by kind."}, []string{"kind"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: metricsPrefix + "failed_passes_total",
			Help: "Scans of the cluster that failed at least in part."}),
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricsPrefix + "last_success_timestamp_seconds",
			Help: "End of the last scan of the cluster without a failure, in seconds since 1970."}),
		objects: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricsPrefix + "objects",
			Help: "Secrets and ConfigMaps that are deleted once nothing refers to them, at the last scan."}),
		unreferenced: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricsPrefix + "unreferenced_objects",
			Help: "Secrets and ConfigMaps that nothing referred to at the last scan."}),
	}
	return m, errors.Join(metrics.Register(to, &m.deleted), metrics.Register(to, &m.failures), metrics.Register(to, &m.lastSuccess), metrics.Register(to, &m.objects), metrics.Register(to, &m.unreferenced))
}
