// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"
)

// Forward makes a loopback port of the machine lead to a host and port inside, until Unforward or
// the end of the holder. It redirects a port that is already forwarded; open connections do not
// change.
func (h *Holder) Forward(ctx context.Context, listenPort int, to string) error {
	if _, _, err := net.SplitHostPort(to); err != nil {
		return fmt.Errorf("forwarding port %d to %q: %w", listenPort, to, err)
	}
	return h.forward(ctx, listenPort, to)
}

// Proxy makes a loopback port of the machine an HTTP CONNECT proxy that dials inside, for
// https_proxy of kubectl and curl. Any user of the machine can use it, like any loopback port.
func (h *Holder) Proxy(ctx context.Context, listenPort int) error {
	return h.forward(ctx, listenPort, "")
}

func (h *Holder) forward(ctx context.Context, port int, to string) error {
	what := request{Op: opForward, Port: port, To: to}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	// Another caller with the same request may have the port and be about to hand it over.
	const attempts, pause = 25, 20 * time.Millisecond
	for attempt := 1; ; attempt++ {
		answer, err := h.roundTrip(ctx, what)
		if err != nil || !answer.NeedListener {
			return err
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
		if err == nil {
			return h.sendListener(ctx, what, listener)
		}
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
			return fmt.Errorf("forwarding port %d: %w", port, err)
		}
		if attempt == attempts {
			return fmt.Errorf("forwarding port %d: %s is in use by another program", port, address)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendListener gives a listener to the holder and closes the local copy.
func (h *Holder) sendListener(ctx context.Context, what request, listener net.Listener) error {
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("forwarding port %d: %w", what.Port, err)
	}
	defer file.Close()
	_, err = h.roundTrip(ctx, what, file.Fd())
	return err
}

// Forwardings lists the ports of Forward and Proxy.
func (h *Holder) Forwardings(ctx context.Context) ([]Forwarding, error) {
	answer, err := h.roundTrip(ctx, request{Op: opList})
	return answer.Forwardings, err
}

// Unforward closes a port of Forward or Proxy and its connections; it ignores a port that is not
// open.
func (h *Holder) Unforward(ctx context.Context, listenPort int) error {
	_, err := h.roundTrip(ctx, request{Op: opUnforward, Port: listenPort})
	return err
}

// SetResolver sets the DNS server inside, as address and port, for names that clients of the proxy
// and of forwarded ports use. Without it only addresses and localhost work.
func (h *Holder) SetResolver(ctx context.Context, server string) error {
	if _, _, err := net.SplitHostPort(server); server != "" && err != nil {
		return fmt.Errorf("setting the DNS server %q: %w", server, err)
	}
	_, err := h.roundTrip(ctx, request{Op: opResolver, Resolver: server})
	return err
}
