// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dialTimeout limits connecting to one endpoint.
const dialTimeout = 5 * time.Second

// tcpListener accepts connections on one address and forwards each.
type tcpListener struct {
	listener *net.TCPListener
	open     *connections
	done     chan struct{}
}

// connections has the open connections, which must not outlive the controller.
type connections struct {
	mu     sync.Mutex
	closed bool
	all    map[io.Closer]bool
	group  sync.WaitGroup
}

// add records a connection; it returns false if the controller is ending.
func (c *connections) add(conn io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.all == nil {
		c.all = map[io.Closer]bool{}
	}
	c.all[conn] = true
	return true
}

func (c *connections) remove(conn io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, conn)
}

// closeAll closes all connections and waits for their goroutines.
func (c *connections) closeAll() {
	c.mu.Lock()
	c.closed = true
	for conn := range c.all {
		conn.Close()
	}
	c.mu.Unlock()
	c.group.Wait()
}

// listenTCP starts accepting. forward owns each connection.
func listenTCP(ctx context.Context, at netip.AddrPort, open *connections, forward func(ctx context.Context, from *net.TCPConn)) (*tcpListener, error) {
	listener, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	l := &tcpListener{listener: listener, open: open, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			conn, err := listener.AcceptTCP()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				// Out of file descriptors, or a disconnected client: the listener continues.
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
				continue
			}
			if !open.add(conn) {
				conn.Close()
				continue
			}
			open.group.Go(func() {
				defer open.remove(conn)
				forward(ctx, conn)
			})
		}
	}()
	return l, nil
}

// Close closes the listener, not the connections.
func (l *tcpListener) Close() error {
	err := l.listener.Close()
	<-l.done
	return err
}

// resetConnection ends a connection as if no server had listened.
func resetConnection(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}

// dialFirst connects to the first endpoint that answers.
func dialFirst(ctx context.Context, endpoints []netip.AddrPort) (*net.TCPConn, netip.AddrPort, error) {
	err := errors.New("no endpoint")
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, endpoint := range endpoints {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, "tcp4", endpoint.String()); err == nil {
			return conn.(*net.TCPConn), endpoint, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, netip.AddrPort{}, err
}

// copyBoth copies both ways. It forwards the end of one direction and continues with the other; an
// error ends both.
func copyBoth(a, b *net.TCPConn) {
	var group sync.WaitGroup
	one := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil {
			resetConnection(to)
			resetConnection(from)
			return
		}
		_ = to.CloseWrite()
	}
	group.Go(func() { one(a, b) })
	one(b, a)
	group.Wait()
	a.Close()
	b.Close()
}
