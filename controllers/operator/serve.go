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

// listen opens the ports. The returned function serves on them.
func (p *parts) listen() (func(context.Context) error, error) {
	registry, err := p.collectors()
	if err != nil {
		return nil, err
	}
	servers, err := serving.Listen(serving.Options{
		Address: p.role.Serve.Address, HealthPort: p.role.Serve.HealthPort, MetricsPort: p.role.Serve.MetricsPort, Metrics: registry,
		Ready: []serving.Question{{Name: "landscapes", Ask: p.ready}},
	})
	if err != nil {
		return nil, err
	}
	var receivers net.Listener
	address := ""
	if p.role.Serve.ReceiverPort >= 0 {
		if receivers, err = net.Listen("tcp", net.JoinHostPort(p.role.Serve.Address, strconv.Itoa(p.role.Serve.ReceiverPort))); err != nil {
			return nil, fmt.Errorf("listening for receivers (--receiver-port): %w", err)
		}
		address = receivers.Addr().String()
	}
	if p.role.Serve.OnListen != nil {
		p.role.Serve.OnListen(servers.Health, servers.Metrics, address)
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return servers.Serve(ctx) })
		if receivers != nil {
			group.Go(func() error { return p.receive(ctx, receivers) })
		}
		return group.Wait()
	}, nil
}

// receive serves requests for a sync.
func (p *parts) receive(ctx context.Context, listener net.Listener) error {
	server := receiver.NewServer(ctx, p.desk.handler, logr.FromSlogHandler(p.role.Log.Handler()))
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(p.desk.handler.Bounded(listener)); ctx.Err() == nil {
		return fmt.Errorf("answering requests for a sync: %w", err)
	}
	return nil
}

// ready returns nil once Landscapes are cached. A replica that waits for the lease is ready, too:
// it takes over when the other one ends.
func (p *parts) ready() error {
	p.mu.Lock()
	waiting := p.waiting
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
