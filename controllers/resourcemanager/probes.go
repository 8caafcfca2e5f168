// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pergola-dev/pergola/internal/serving"
)

// addProbes serves liveness and readiness (ManagedResources, lease, webhooks). An instance that
// waits for the lease is ready.
func (p *roleProcess) addProbes(context.Context) error {
	address := p.role.Configuration.Server.HealthProbes.Address()
	if address == "0" {
		return nil
	}
	ready := []serving.Check{{Name: "managedresources", Run: p.checkManagedResources}}
	if p.lease != nil {
		ready = append(ready, serving.Check{Name: "lease", Run: p.lease.ready})
	}
	if p.role.Configuration.Webhooks.HasEnabled() {
		started := p.controllerManager.GetWebhookServer().StartedChecker()
		ready = append(ready, serving.Check{Name: "webhooks", Run: func() error { return started(nil) }})
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening for probes (--health-port, server.healthProbes): %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/healthz", serving.CheckHandler())
	mux.Handle("/readyz", serving.CheckHandler(ready...))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 16}
	if err := p.controllerManager.Add(&manager.Server{Name: "health probe", Server: server, Listener: listener}); err != nil {
		_ = listener.Close() // the error of Add says more
		return err
	}
	return nil
}

// checkManagedResources returns nil once the source serves ManagedResources and, if this instance
// has the lease, all are read.
func (p *roleProcess) checkManagedResources() error {
	if err := p.definition.ready(); err != nil {
		return err
	}
	select {
	case <-p.controllerManager.Elected():
		return p.resourceManager.Ready()
	default:
		return nil
	}
}
