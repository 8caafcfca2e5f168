package tokenrequestor

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// What became of a look at a Secret that needs a token.
const (
	resultSuccess  = "success"
	resultError    = "error"
	resultConflict = "conflict"
)

// requestorMetrics are what Prometheus learns.
type requestorMetrics struct {
	renewals *prometheus.CounterVec
	expires  *prometheus.GaugeVec
}

const metricsPrefix = "pergola_token_requestor_"

func newMetrics(to prometheus.Registerer) (*requestorMetrics, error) {
	m := &requestorMetrics{
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricsPrefix + "renewals_total",
			Help: "Attempts at giving a Secret a new token, by result: success, error, or conflict, where the Secret changed meanwhile."}, []string{"result"}),
		expires: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metricsPrefix + "token_expiration_timestamp_seconds",
			Help: "When the token of a Secret expires, in seconds since 1970."}, []string{"namespace", "name"}),
	}
	return m, errors.Join(register(to, &m.renewals), register(to, &m.expires))
}

func (m *requestorMetrics) expiration(secret types.NamespacedName, at time.Time) {
	m.expires.WithLabelValues(secret.Namespace, secret.Name).Set(float64(at.Unix()))
}

func (m *requestorMetrics) forget(secret types.NamespacedName) {
	m.expires.DeleteLabelValues(secret.Namespace, secret.Name)
}

// register takes the collector that is there already, of another manager or another class in the same process.
func register[T prometheus.Collector](to prometheus.Registerer, collector *T) error {
	err := to.Register(*collector)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		if there, ok := already.ExistingCollector.(T); ok {
			*collector = there
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("registering metrics of the token requestor: %w", err)
	}
	return nil
}
