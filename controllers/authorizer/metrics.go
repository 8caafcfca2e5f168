package authorizer

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// observation is one request, by its labels.
type observation struct{ authorizer, result string }

// metrics are counters in the text format of Prometheus; so few need no library.
type metrics struct {
	mu       sync.Mutex
	requests map[observation]int
	seconds  map[string]float64
}

func newMetrics() *metrics {
	return &metrics{requests: map[observation]int{}, seconds: map[string]float64{}}
}

func (m *metrics) observe(o observation, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[o]++
	m.seconds[o.authorizer] += took.Seconds()
}

func (m *metrics) write(w http.ResponseWriter, vertices, edges int, ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	head := func(name, typ, help string) {
		fmt.Fprintf(&b, "# HELP %[1]s %[3]s\n# TYPE %[1]s %[2]s\n", name, typ, help)
	}
	head("pergola_authorizer_requests_total", "counter", "Requests of the API server of the virtual garden, by what was answered.")
	for _, o := range slices.SortedFunc(maps.Keys(m.requests), func(a, b observation) int {
		return cmp.Or(cmp.Compare(a.authorizer, b.authorizer), cmp.Compare(a.result, b.result))
	}) {
		fmt.Fprintf(&b, "pergola_authorizer_requests_total{authorizer=%q,result=%q} %d\n", o.authorizer, o.result, m.requests[o])
	}
	head("pergola_authorizer_request_seconds_total", "counter", "Time that requests took.")
	for _, name := range slices.Sorted(maps.Keys(m.seconds)) {
		fmt.Fprintf(&b, "pergola_authorizer_request_seconds_total{authorizer=%q} %g\n", name, m.seconds[name])
	}
	head("pergola_authorizer_graph_vertices", "gauge", "Objects that are known to belong to somebody.")
	fmt.Fprintf(&b, "pergola_authorizer_graph_vertices %d\n", vertices)
	head("pergola_authorizer_graph_edges", "gauge", "References between them.")
	fmt.Fprintf(&b, "pergola_authorizer_graph_edges %d\n", edges)
	head("pergola_authorizer_ready", "gauge", "Whether all of the virtual garden was read.")
	value := 0
	if ready {
		value = 1
	}
	fmt.Fprintf(&b, "pergola_authorizer_ready %d\n", value)
	_, _ = io.WriteString(w, b.String())
}
