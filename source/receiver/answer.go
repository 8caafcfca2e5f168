// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of requests, in metrics and answers.
const (
	resultRequested = "requested"
	resultIgnored   = "ignored"
	resultPing      = "ping"
	resultRefused   = "refused"
	resultReplayed  = "replayed"
	resultLimited   = "limited"
	resultTooLarge  = "too_large"
	resultInvalid   = "invalid"
)

// Response is the body of each answer except the stream of a followed sync.
type Response struct {
	// Result is one word: requested, ignored, ping, refused, replayed, limited, too_large or
	// invalid.
	Result string `json:"result"`
	// Message is the message for people.
	Message string `json:"message"`
}

func (r *Receiver) writeResponse(w http.ResponseWriter, receiver, result string, status int, message string) {
	r.metrics.requests.WithLabelValues(receiver, result).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// the client may have disconnected
	_ = json.NewEncoder(w).Encode(Response{Result: result, Message: message})
}

func (r *Receiver) respondRateLimited(w http.ResponseWriter, receiver string) {
	w.Header().Set("Retry-After", "5")
	r.writeResponse(w, receiver, resultLimited, http.StatusTooManyRequests, "too many requests")
}

// counters are the counters of requests. Only proven requests have the label receiver: strangers
// cannot create series.
type counters struct{ requests *prometheus.CounterVec }

func newCounters() *counters {
	return &counters{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pergola_receiver_requests_total",
		Help: "Requests for a sync by HTTP, by receiver (namespace/landscape/name; empty until the secret is proven) and result.",
	}, []string{"receiver", "result"})}
}

// Describe implements prometheus.Collector.
func (r *Receiver) Describe(ch chan<- *prometheus.Desc) { r.metrics.requests.Describe(ch) }

// Collect implements prometheus.Collector.
func (r *Receiver) Collect(ch chan<- prometheus.Metric) { r.metrics.requests.Collect(ch) }
