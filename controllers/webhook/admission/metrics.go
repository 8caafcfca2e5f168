// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pergola-dev/pergola/schemas"
)

// Results of a request.
const (
	resultAllowed = "allowed"
	resultDenied  = "denied"
	resultError   = "error"
)

// labelOther replaces kinds without rules and unknown operations, so that clients cannot create
// labels.
const labelOther = "other"

// observation contains the labels of one request.
type observation struct{ webhook, kind, operation, result string }

type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.CounterVec
	panics   prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_admission_requests_total",
			Help: "Requests of API servers, by result."}, []string{"webhook", "kind", "operation", "result"}),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pergola_admission_request_seconds_total",
			Help: "Time spent on requests."}, []string{"webhook"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "pergola_admission_panics_total",
			Help: "Requests that caused a panic."}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.panics)
	return m
}

func (m *metrics) observe(o observation, took time.Duration) {
	m.requests.WithLabelValues(o.webhook, o.kind, o.operation, o.result).Inc()
	m.seconds.WithLabelValues(o.webhook).Add(took.Seconds())
}

func (m *metrics) countPanic() { m.panics.Inc() }

// kindLabel returns the kind of a request as a label.
func kindLabel(request *admissionv1.AdmissionRequest) string {
	if gvk := kindOf(request); schemas.IsKnown(gvk) {
		return gvk.GroupKind().String()
	}
	return labelOther
}

func operationLabel(request *admissionv1.AdmissionRequest) string {
	switch request.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return string(request.Operation)
	}
	return labelOther
}
