// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServe(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."})
	registry.MustRegister(counter)
	counter.Inc()
	s, err := Listen(Options{Metrics: registry, Ready: []Check{
		{"good", func() error { return nil }}, {"seed", func() error { return errors.New("cannot be reached") }},
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	get := func(address, path string) (int, string) {
		answer, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	code, text := get(s.Health, "/healthz")
	assert.Equal(t, 200, code)
	assert.Equal(t, "ok", text)
	code, text = get(s.Health, "/readyz")
	assert.Equal(t, 500, code)
	assert.Equal(t, "seed: cannot be reached\n", text)
	_, text = get(s.Metrics, "/metrics")
	assert.Contains(t, text, "things_total 1")
	cancel()
	require.NoError(t, <-ended)
	_, err = http.Get("http://" + s.Health + "/healthz")
	assert.Error(t, err)
}

func TestNoPort(t *testing.T) {
	s, err := Listen(Options{HealthPort: -1, MetricsPort: -1})
	require.NoError(t, err)
	assert.Empty(t, s.Health+s.Metrics)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, s.Serve(ctx))
}
