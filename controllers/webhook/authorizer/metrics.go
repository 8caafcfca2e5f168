// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// observation contains the labels of one request.
type observation struct{ authorizer, result string }

type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.CounterVec
}

// newMetrics returns counters of requests. The size and readiness of the graph are read on
// collection.
func newMetrics(size func() (vertices, edges int), ready func() error) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_authorizer_requests_total",
			Help: "Requests of the API server of the virtual garden, by result."}, []string{"authorizer", "result"}),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_authorizer_request_seconds_total",
			Help: "Time spent on requests."}, []string{"authorizer"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, graphSize{size},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pergola_authorizer_ready", Help: "1 if the whole virtual garden has been read, 0 if not."}, func() float64 {
			if ready() != nil {
				return 0
			}
			return 1
		}))
	return m
}

func (m *metrics) observe(o observation, took time.Duration) {
	m.requests.WithLabelValues(o.authorizer, o.result).Inc()
	m.seconds.WithLabelValues(o.authorizer).Add(took.Seconds())
}

// graphSize collects both sizes at the same moment.
type graphSize struct {
	size func() (vertices, edges int)
}

func verticesDesc() *prometheus.Desc {
	return prometheus.NewDesc("pergola_authorizer_graph_vertices", "Objects in the reference graph.", nil, nil)
}

func edgesDesc() *prometheus.Desc {
	return prometheus.NewDesc("pergola_authorizer_graph_edges", "References in the reference graph.", nil, nil)
}

// Describe implements prometheus.Collector.
func (g graphSize) Describe(out chan<- *prometheus.Desc) { out <- verticesDesc(); out <- edgesDesc() }

// Collect implements prometheus.Collector.
func (g graphSize) Collect(out chan<- prometheus.Metric) {
	vertices, edges := g.size()
	out <- prometheus.MustNewConstMetric(verticesDesc(), prometheus.GaugeValue, float64(vertices))
	out <- prometheus.MustNewConstMetric(edgesDesc(), prometheus.GaugeValue, float64(edges))
}
