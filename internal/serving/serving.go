// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// Check is a check of a probe; Run returns nil if it passes.
type Check struct {
	Name string
	Run  func() error
}

// Options are the options of the ports. A negative port disables it, and 0 picks any free one.
type Options struct {
	// Address is the IP address or host name to listen on; it is empty for all addresses.
	Address                 string
	HealthPort, MetricsPort int
	// Live and Ready are the checks of /healthz and /readyz.
	Live, Ready []Check
	// Metrics are served on /metrics.
	Metrics prometheus.Gatherer
}

// Servers have open ports; Serve answers requests.
type Servers struct {
	servers   []*http.Server
	listeners []net.Listener
	// Health and Metrics are the addresses; it is empty for a disabled port.
	Health, Metrics string
}

// Listen opens the ports, so that a port in use is an error at once.
func Listen(o Options) (*Servers, error) {
	s := &Servers{}
	probes := http.NewServeMux()
	probes.Handle("/healthz", CheckHandler(o.Live...))
	probes.Handle("/readyz", CheckHandler(o.Ready...))
	metrics := http.NewServeMux()
	if o.Metrics != nil {
		metrics.Handle("/metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}))
	}
	var err error
	if s.Health, err = s.listen("probes (--health-port)", o.Address, o.HealthPort, probes); err != nil {
		return nil, err
	}
	if s.Metrics, err = s.listen("metrics (--metrics-port)", o.Address, o.MetricsPort, metrics); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Servers) listen(what, address string, port int, handler http.Handler) (string, error) {
	if port < 0 {
		return "", nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return "", fmt.Errorf("listening for %s: %w", what, err)
	}
	s.listeners = append(s.listeners, listener)
	s.servers = append(s.servers, &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 16})
	return listener.Addr().String(), nil
}

func (s *Servers) close() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// Serve answers requests until ctx ends.
func (s *Servers) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, server := range s.servers {
		group.Go(func() error {
			if err := server.Serve(s.listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		// Answers are short: a waiting client receives its answer now, or asks again.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		for _, server := range s.servers {
			_ = server.Shutdown(ending)
		}
		return nil
	})
	return group.Wait()
}

// CheckHandler returns a handler that says ok, or which checks fail and why: unlike an API server,
// a role has nothing to hide.
func CheckHandler(questions ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var wrong []string
		for _, q := range questions {
			if err := q.Run(); err != nil {
				wrong = append(wrong, q.Name+": "+err.Error())
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if len(wrong) > 0 {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintln(w, strings.Join(wrong, "\n"))
			return
		}
		fmt.Fprint(w, "ok")
	})
}
