package garbagecollector

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
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
	return m, errors.Join(register(to, &m.deleted), register(to, &m.failures), register(to, &m.lastSuccess), register(to, &m.objects), register(to, &m.unreferenced))
}

// register reuses the collector of another manager in the same process.
func register[T prometheus.Collector](to prometheus.Registerer, collector *T) error {
	err := to.Register(*collector)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		if there, ok := already.ExistingCollector.(T); ok {
			*collector = there
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("registering metrics of the garbage collector: %w", err)
	}
	return nil
}
