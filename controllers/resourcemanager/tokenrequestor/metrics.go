// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/internal/metrics"
)

// Results of reconciling a Secret that needs a token.
const (
	resultSuccess  = "success"
	resultError    = "error"
	resultConflict = "conflict"
)

// requestorMetrics are the metrics for Prometheus, without a series per Secret: a garden has many
// thousands of Secrets, and events name those that fail.
type requestorMetrics struct {
	class       string
	renewals    *prometheus.CounterVec
	expirations *expirationMetrics
}

const metricsPrefix = "pergola_token_requestor_"

func newMetrics(to prometheus.Registerer, class string) (*requestorMetrics, error) {
	m := &requestorMetrics{
		class: class,
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricsPrefix + "renewals_total",
			Help: "Attempts to renew the token of a Secret, by class of the Secret and result: success, error, or conflict (the Secret changed meanwhile)."},
			[]string{"class", "result"}),
		expirations: &expirationMetrics{
			earliest: prometheus.NewDesc(metricsPrefix+"earliest_expiration_timestamp_seconds",
				"Earliest expiry of all tokens, in seconds since 1970.", []string{"class"}, nil),
			count:   prometheus.NewDesc(metricsPrefix+"tokens", "Secrets that have a token.", []string{"class"}, nil),
			expires: map[string]map[types.NamespacedName]time.Time{},
		},
	}
	return m, errors.Join(metrics.Register(to, &m.renewals), metrics.Register(to, &m.expirations))
}

func (m *requestorMetrics) countRenewal(result string) {
	m.renewals.WithLabelValues(m.class, result).Inc()
}

func (m *requestorMetrics) setExpiration(secret types.NamespacedName, at time.Time) {
	m.expirations.set(m.class, secret, at)
}

func (m *requestorMetrics) forget(secret types.NamespacedName) { m.expirations.forget(m.class, secret) }

// expirationMetrics are the expiry times by class. The earliest one is computed at each scrape.
type expirationMetrics struct {
	earliest, count *prometheus.Desc

	mu      sync.Mutex
	expires map[string]map[types.NamespacedName]time.Time
}

func (t *expirationMetrics) set(class string, secret types.NamespacedName, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expires[class] == nil {
		t.expires[class] = map[types.NamespacedName]time.Time{}
	}
	t.expires[class][secret] = at
}

func (t *expirationMetrics) forget(class string, secret types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.expires[class], secret); len(t.expires[class]) == 0 {
		delete(t.expires, class)
	}
}

// Describe implements prometheus.Collector.
func (t *expirationMetrics) Describe(out chan<- *prometheus.Desc) { out <- t.earliest; out <- t.count }

// Collect implements prometheus.Collector.
func (t *expirationMetrics) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for class, expires := range t.expires {
		var first time.Time
		for _, at := range expires {
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
		out <- prometheus.MustNewConstMetric(t.earliest, prometheus.GaugeValue, float64(first.Unix()), class)
		out <- prometheus.MustNewConstMetric(t.count, prometheus.GaugeValue, float64(len(expires)), class)
	}
}
