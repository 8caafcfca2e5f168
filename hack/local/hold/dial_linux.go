// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// dialTimeout is short: servers inside answer at once or never.
const dialTimeout = 10 * time.Second

var errNoResolver = errors.New("no DNS server is known for the names inside")

// dial connects to a host and port inside; resolver is the DNS server for names.
func dial(ctx context.Context, address, resolver string) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	dialer := net.Dialer{Resolver: &net.Resolver{
		PreferGo: true,
		// The machine's DNS servers are unreachable from inside.
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if resolver == "" {
				return nil, errNoResolver
			}
			return (&net.Dialer{}).DialContext(ctx, network, resolver)
		},
	}}
	// A trailing dot skips the machine's search domains.
	if net.ParseIP(host) == nil && !strings.HasSuffix(host, ".") && host != "localhost" {
		host += "."
	}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// copyBoth copies both ways until both sides have closed, one has failed or ctx is done, and closes
// both. The kernel moves the bytes (splice), so a connection needs no buffer here.
func copyBoth(ctx context.Context, a, b *net.TCPConn) {
	stop := context.AfterFunc(ctx, func() {
		_ = a.Close()
		_ = b.Close()
	})
	defer stop()
	var directions sync.WaitGroup
	directions.Go(func() { copyDirection(a, b) })
	directions.Go(func() { copyDirection(b, a) })
	directions.Wait()
	_ = a.Close()
	_ = b.Close()
}

// copyDirection copies one direction; a close closes one half, an error both connections.
func copyDirection(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		for _, conn := range []*net.TCPConn{to, from} {
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
		return
	}
	_ = to.CloseWrite()
}
