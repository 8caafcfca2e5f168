// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// udpIdle is the time without packets after which a flow ends.
	udpIdle = 60 * time.Second
	// maxFlows limits the flows of one address.
	maxFlows = 4096
)

// udpListener forwards packets to one address, and the answers.
type udpListener struct {
	conn           *net.UDPConn
	candidates     func(from netip.Addr) []netip.AddrPort
	recordEndpoint func(from netip.Addr, endpoint netip.AddrPort)
	group          sync.WaitGroup

	mu     sync.Mutex
	closed bool
	flows  map[netip.AddrPort]*net.UDPConn
}

func listenUDP(ctx context.Context, at netip.AddrPort, order func(netip.Addr) []netip.AddrPort, used func(netip.Addr, netip.AddrPort)) (*udpListener, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	l := &udpListener{conn: conn, candidates: order, recordEndpoint: used, flows: map[netip.AddrPort]*net.UDPConn{}}
	l.group.Go(func() { l.serve(ctx) })
	return l, nil
}

func (l *udpListener) serve(ctx context.Context) {
	packet := make([]byte, 64<<10)
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		flow := l.flow(ctx, from)
		if flow == nil {
			continue
		}
		_ = flow.SetReadDeadline(time.Now().Add(udpIdle))
		if _, err := flow.Write(packet[:n]); err != nil {
			// The endpoint has refused the previous packet: the next packet gets a new flow.
			l.removeFlow(from, flow)
		}
	}
}

// flow returns the socket of one client. It is connected, so its packets belong to that client.
func (l *udpListener) flow(ctx context.Context, from netip.AddrPort) *net.UDPConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if flow := l.flows[from]; flow != nil {
		return flow
	}
	if l.closed || len(l.flows) >= maxFlows {
		return nil
	}
	var dialer net.Dialer
	for _, endpoint := range l.candidates(from.Addr()) {
		if isPlayed(endpoint) {
			continue
		}
		conn, err := dialer.DialContext(ctx, "udp4", endpoint.String())
		if err != nil {
			continue
		}
		flow := conn.(*net.UDPConn)
		l.recordEndpoint(from.Addr(), endpoint)
		l.flows[from] = flow
		l.group.Go(func() { l.answer(from, flow) })
		return flow
	}
	return nil
}

func (l *udpListener) answer(to netip.AddrPort, flow *net.UDPConn) {
	defer l.removeFlow(to, flow)
	packet := make([]byte, 64<<10)
	for {
		n, err := flow.Read(packet)
		if err != nil {
			return
		}
		if _, err := l.conn.WriteToUDPAddrPort(packet[:n], to); err != nil {
			return
		}
		_ = flow.SetReadDeadline(time.Now().Add(udpIdle))
	}
}

func (l *udpListener) removeFlow(from netip.AddrPort, flow *net.UDPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flows[from] == flow {
		delete(l.flows, from)
	}
	flow.Close()
}

// Close closes the listener and all flows.
func (l *udpListener) Close() error {
	err := l.conn.Close()
	l.mu.Lock()
	l.closed = true
	for _, flow := range l.flows {
		flow.Close()
	}
	l.mu.Unlock()
	l.group.Wait()
	return err
}
