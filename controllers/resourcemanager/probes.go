package resourcemanager

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// probe is a question that a probe asks; nil is good.
type probe struct {
	name string
	ask  func(*http.Request) error
}

// probes say that the process lives, and that it can do its work and its webhooks can be asked. One that waits for the lease is ready.
func (p *parts) probes(context.Context) error {
	address := p.Configuration.Server.HealthProbes.Address()
	if address == "0" {
		return nil
	}
	ready := []probe{
		{"managedresources", func(*http.Request) error { return p.known() }},
	}
	if p.lease != nil {
		ready = append(ready, probe{"lease", func(*http.Request) error { return p.lease.ready() }})
	}
	if p.Configuration.Webhooks.Any() {
		ready = append(ready, probe{"webhooks", p.mgr.GetWebhookServer().StartedChecker()})
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening for probes (--health-port, server.healthProbes): %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", answers(nil))
	mux.Handle("/readyz", answers(ready))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 16}
	if err := p.mgr.Add(&manager.Server{Name: "health probe", Server: server, Listener: listener}); err != nil {
		_ = listener.Close() // the other error says more
		return err
	}
	return nil
}

// known is nil once there can be ManagedResources and, where this instance has the lease, it has read them.
func (p *parts) known() error {
	if err := p.definition.ready(); err != nil {
		return err
	}
	select {
	case <-p.mgr.Elected():
		return p.work.Ready()
	default:
		return nil
	}
}

// answers says ok, or which questions have another answer, and why: unlike an API server, this one has nothing to hide.
func answers(questions []probe) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var wrong []string
		for _, q := range questions {
			if err := q.ask(req); err != nil {
				wrong = append(wrong, q.name+": "+err.Error())
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
