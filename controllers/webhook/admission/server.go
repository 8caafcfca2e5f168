// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
)

// Server serves webhooks over TLS, and health and metrics without TLS.
type Server struct {
	// Handler answers the API server: a *Handler or another one.
	Handler http.Handler
	// Metrics are served with the health; the default is those of a *Handler.
	Metrics prometheus.Gatherer
	// Ready returns why requests cannot be answered yet; nil means always ready.
	Ready        func() error
	Certificates CertificateFunc
	// Webhooks, Health and MetricsOnly are the listeners until Run returns; the last two may be
	// nil. Health serves the metrics, too.
	Webhooks, Health, MetricsOnly net.Listener
	// ShutdownDelay is how long new requests are answered after ctx has ended, while /readyz fails.
	// Clients of a Service need that time to switch to another server. The default is 0.
	ShutdownDelay time.Duration
	// DrainTimeout is how long requests may take to end after that; the default is 1.5 seconds.
	DrainTimeout time.Duration
	// Clock measures Linger; the default is the real one.
	Clock clock.Clock
	Log   *slog.Logger
}

// Run serves until ctx ends and Linger passes, and then waits for active requests.
func (s *Server) Run(ctx context.Context) error {
	drain := s.DrainTimeout
	if drain <= 0 {
		drain = 1500 * time.Millisecond
	}
	var leaving atomic.Bool
	webhooks := s.newHTTPServer(s.Handler)
	webhooks.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Certificates}
	health := s.newHTTPServer(s.healthHandler(&leaving))
	metrics := s.newHTTPServer(health.Handler)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return serveError("webhooks", webhooks.ServeTLS(s.Webhooks, "", "")) })
	if s.Health != nil {
		group.Go(func() error { return serveError("health", health.Serve(s.Health)) })
	}
	if s.MetricsOnly != nil {
		group.Go(func() error { return serveError("metrics", metrics.Serve(s.MetricsOnly)) })
	}
	group.Go(func() error {
		<-running.Done()
		leaving.Store(true)
		if s.ShutdownDelay > 0 && ctx.Err() != nil { // not after a failure to serve
			<-clockOrReal(s.Clock).After(s.ShutdownDelay)
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		// The health server stops last, so that probes do not fail while the server still answers.
		return errors.Join(shutDown(webhooks, end), shutDown(health, end), shutDown(metrics, end))
	})
	return group.Wait()
}

func clockOrReal(c clock.Clock) clock.Clock {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

func (s *Server) newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: maxTimeout, WriteTimeout: maxTimeout + 5*time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
}

// healthHandler answers /healthz, /readyz and /metrics.
func (s *Server) healthHandler(leaving *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if leaving.Load() {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		if s.Ready != nil {
			if err := s.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	metrics := s.Metrics
	if own, ok := s.Handler.(*Handler); ok && metrics == nil {
		metrics = own.Metrics()
	}
	if metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	}
	return mux
}

func serveError(what string, err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the %s: %w", what, err)
}

// shutDown shuts a server down, and closes the connections of requests that do not end in time.
func shutDown(server *http.Server, end context.Context) error {
	if err := server.Shutdown(end); err != nil {
		return errors.Join(fmt.Errorf("requests did not end in time: %w", err), server.Close())
	}
	return nil
}
