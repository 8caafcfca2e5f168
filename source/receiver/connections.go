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
	maxConnections       = 1024
	maxConnectionsSender = 128
)

// Bounded returns a listener that immediately closes connections beyond the bounds. A proxy has
// many senders, so only the total bound applies.
func (r *Receiver) Bounded(inner net.Listener) net.Listener {
	return &bounded{Listener: inner, receiver: r, open: map[string]int{}, most: maxConnections, mostSender: maxConnectionsSender}
}

type bounded struct {
	net.Listener
	receiver         *Receiver
	most, mostSender int

	mu    sync.Mutex
	total int
	// open connections by address or network.
	open map[string]int
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := b.sourceOf(c)
		if b.enter(source) {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { b.leave(source) })}, nil
		}
		_ = c.Close() // no data was exchanged
	}
}

// sourceOf returns the sender that a connection counts for; empty for a proxy.
func (b *bounded) sourceOf(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	if b.receiver.proxy(at.Addr()) {
		return ""
	}
	return network(at.Addr())
}

func (b *bounded) enter(source string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.total >= b.most || source != "" && b.open[source] >= b.mostSender {
		return false
	}
	b.total++
	b.open[source]++
	return true
}

func (b *bounded) leave(source string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total--
	if b.open[source]--; b.open[source] == 0 {
		delete(b.open, source)
	}
}

// counted frees its slot when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}
