package admission

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pergola-dev/pergola/schemas"
)

// What became of a request.
const (
	resultAllowed = "allowed"
	resultDenied  = "denied"
	resultError   = "error"
)

// other stands for kinds without rules and unknown operations, so that senders cannot make up labels.
const other = "other"

// observation is one request, by its labels.
type observation struct{ webhook, kind, operation, result string }

// metrics are counters in the text format of Prometheus; so few need no library.
type metrics struct {
	mu       sync.Mutex
	requests map[observation]int
	seconds  map[string]float64
	panics   int
}

func newMetrics() *metrics {
	return &metrics{requests: map[observation]int{}, seconds: map[string]float64{}}
}

func (m *metrics) observe(o observation, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[o]++
	m.seconds[o.webhook] += took.Seconds()
}

func (m *metrics) panicked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.panics++
}

// kindLabel is the kind of a request for counters.
func kindLabel(request *admissionv1.AdmissionRequest) string {
	if gvk := kindOf(request); schemas.Known(gvk) {
		return gvk.GroupKind().String()
	}
	return other
}

func operationLabel(request *admissionv1.AdmissionRequest) string {
	switch request.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return string(request.Operation)
	}
	return other
}

// ServeHTTP writes the counters.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	counter := func(name, help string) {
		fmt.Fprintf(&b, "# HELP %[1]s %[2]s\n# TYPE %[1]s counter\n", name, help)
	}
	counter("pergola_admission_requests_total", "Requests of API servers, by what became of them.")
	ordered := slices.SortedFunc(maps.Keys(m.requests), func(a, b observation) int {
		return cmp.Or(cmp.Compare(a.webhook, b.webhook), cmp.Compare(a.kind, b.kind), cmp.Compare(a.operation, b.operation), cmp.Compare(a.result, b.result))
	})
	for _, o := range ordered {
		fmt.Fprintf(&b, "pergola_admission_requests_total{webhook=%q,kind=%q,operation=%q,result=%q} %d\n", o.webhook, o.kind, o.operation, o.result, m.requests[o])
	}
	counter("pergola_admission_request_seconds_total", "Time that requests took.")
	for _, webhook := range slices.Sorted(maps.Keys(m.seconds)) {
		fmt.Fprintf(&b, "pergola_admission_request_seconds_total{webhook=%q} %g\n", webhook, m.seconds[webhook])
	}
	counter("pergola_admission_panics_total", "Requests that made the program panic.")
	fmt.Fprintf(&b, "pergola_admission_panics_total %d\n", m.panics)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}
