// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net"
	"net/netip"
	"sync"
)

// A connection costs a goroutine and a few kilobytes from its first byte on, before a request has a
// sender or proof. Slow headers hold it for seconds. So connections are bounded, in total and by
// sender.
const (
	maxConnections          = 1024
	maxConnectionsPerSender = 128
)

// LimitConnections returns a listener that immediately closes connections beyond the bounds. A
// proxy has many senders, so only the total bound applies.
func (r *Receiver) LimitConnections(inner net.Listener) net.Listener {
	return &boundedListener{Listener: inner, receiver: r, connections: map[string]int{}, maxTotal: maxConnections, maxPerSender: maxConnectionsPerSender}
}

type boundedListener struct {
	net.Listener
	receiver               *Receiver
	maxTotal, maxPerSender int

	mu    sync.Mutex
	total int
	// connections connections by address or network.
	connections map[string]int
}

// Accept implements net.Listener.
func (b *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := b.sourceOf(c)
		if b.acquire(source) {
			return &countedConn{Conn: c, release: sync.OnceFunc(func() { b.release(source) })}, nil
		}
		_ = c.Close() // no data was exchanged
	}
}

// sourceOf returns the sender that a connection counts for, or "" for a proxy.
func (b *boundedListener) sourceOf(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	if b.receiver.isProxy(at.Addr()) {
		return ""
	}
	return networkOf(at.Addr())
}

func (b *boundedListener) acquire(source string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.total >= b.maxTotal || source != "" && b.connections[source] >= b.maxPerSender {
		return false
	}
	b.total++
	b.connections[source]++
	return true
}

func (b *boundedListener) release(source string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total--
	if b.connections[source]--; b.connections[source] == 0 {
		delete(b.connections, source)
	}
}

// countedConn frees its slot when it is closed.
type countedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
