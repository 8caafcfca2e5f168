// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/internal/serving"
	"github.com/pergola-dev/pergola/source/receiver"
)

// listenOnPorts opens the ports. The returned function serves on them.
func (p *runningOperator) listenOnPorts() (func(context.Context) error, error) {
	registry, err := p.newMetricsRegistry()
	if err != nil {
		return nil, err
	}
	servers, err := serving.Listen(serving.Options{
		Address: p.role.Serving.Address, HealthPort: p.role.Serving.HealthPort, MetricsPort: p.role.Serving.MetricsPort, Metrics: registry,
		Ready: []serving.Check{{Name: "landscapes", Run: p.checkReady}},
	})
	if err != nil {
		return nil, err
	}
	var receivers net.Listener
	address := ""
	if p.role.Serving.ReceiverPort >= 0 {
		if receivers, err = net.Listen("tcp", net.JoinHostPort(p.role.Serving.Address, strconv.Itoa(p.role.Serving.ReceiverPort))); err != nil {
			return nil, fmt.Errorf("listening for receivers (--receiver-port): %w", err)
		}
		address = receivers.Addr().String()
	}
	if p.role.Serving.OnListen != nil {
		p.role.Serving.OnListen(servers.Health, servers.Metrics, address)
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return servers.Serve(ctx) })
		if receivers != nil {
			group.Go(func() error { return p.serveReceivers(ctx, receivers) })
		}
		return group.Wait()
	}, nil
}

// serveReceivers serves requests for a sync.
func (p *runningOperator) serveReceivers(ctx context.Context, listener net.Listener) error {
	server := receiver.NewServer(ctx, p.requestHandler.receiver, logr.FromSlogHandler(p.role.Log.Handler()))
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(p.requestHandler.receiver.LimitConnections(listener)); ctx.Err() == nil {
		return fmt.Errorf("answering requests for a sync: %w", err)
	}
	return nil
}

// checkReady returns nil once Landscapes are cached. A replica that waits for the lease is ready,
// too: it takes over when the other one ends.
func (p *runningOperator) checkReady() error {
	p.mu.Lock()
	waiting := p.notWorkingReason
	p.mu.Unlock()
	select {
	case <-p.mgr.Elected(): // without an election it closes once the caches are started
	default:
		if waiting == "" {
			waiting = "Landscapes are not read yet"
		}
		return errors.New(waiting)
	}
	return nil
}

func processCollectors() []prometheus.Collector {
	return []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}
