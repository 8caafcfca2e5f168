// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"github.com/prometheus/client_golang/prometheus"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// kubernetesEventType is the type of a Kubernetes event in metrics.
const kubernetesEventType landscapev1alpha1.NotificationType = "event"

// Results of notifications.
const (
	resultSent       = "sent"
	resultFailed     = "failed"     // rejected, or out of retries
	resultDropped    = "dropped"    // the queue was full
	resultRepeated   = "repeated"   // sent before
	resultSuperseded = "superseded" // replaced by a newer one
)

type metrics struct {
	notifications *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pergola_notifications_total",
		Help: "Notifications by type (event, commitStatus, webhook) and result (sent, failed, dropped, repeated, superseded).",
	}, []string{"type", "result"})}
}

func (m *metrics) count(kind landscapev1alpha1.NotificationType, result string) {
	m.notifications.WithLabelValues(string(kind), result).Inc()
}

// Describe implements prometheus.Collector.
func (n *Notifier) Describe(ch chan<- *prometheus.Desc) { n.metrics.notifications.Describe(ch) }

// Collect implements prometheus.Collector.
func (n *Notifier) Collect(ch chan<- prometheus.Metric) { n.metrics.notifications.Collect(ch) }
