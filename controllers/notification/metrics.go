package notification

import (
	"github.com/prometheus/client_golang/prometheus"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// typeEvent is a Kubernetes event, in metrics.
const typeEvent landscapev1alpha1.NotificationType = "event"

// Results of telling somebody.
const (
	sent       = "sent"
	failed     = "failed"     // refused, or tried often enough
	dropped    = "dropped"    // too many waited
	repeated   = "repeated"   // told already
	superseded = "superseded" // something newer was told instead
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

// Describe is that of a prometheus.Collector.
func (n *Notifier) Describe(ch chan<- *prometheus.Desc) { n.metrics.notifications.Describe(ch) }

// Collect is that of a prometheus.Collector.
func (n *Notifier) Collect(ch chan<- prometheus.Metric) { n.metrics.notifications.Collect(ch) }
