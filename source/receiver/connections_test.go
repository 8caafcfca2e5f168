// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConnectionsAreBounded: connections beyond the bound of a sender or the total are closed at
// once. Only the total applies to a proxy, and closing a connection frees its slot.
func TestConnectionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		proxies          []netip.Prefix
		most, mostSender int
		want             int
	}{
		"sender": {nil, 10, 2, 2},
		"all":    {nil, 3, 10, 3},
		"proxy":  {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, 4, 2, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			l := (&Receiver{proxies: c.proxies}).LimitConnections(inner)
			l.(*boundedListener).maxTotal, l.(*boundedListener).maxPerSender = c.most, c.mostSender
			t.Cleanup(func() { _ = l.Close() })
			taken := make(chan net.Conn, 20)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					taken <- conn
				}
			}()
			var last net.Conn // last accepted connection
			open := func() (isOpen bool) {
				t.Helper()
				conn, err := net.Dial("tcp", inner.Addr().String())
				require.NoError(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					_, _ = conn.Read(make([]byte, 1)) // ends when the other side closes
				}()
				select {
				case server := <-taken:
					t.Cleanup(func() { _ = server.Close() })
					last = server
					return true
				case <-closed:
					return false
				case <-time.After(time.Minute):
					require.Fail(t, "neither taken nor closed")
				}
				return false
			}
			for range c.want {
				assert.True(t, open())
			}
			assert.False(t, open())
			require.NoError(t, last.Close())
			_ = last.Close() // counts once
			assert.True(t, open())
			assert.False(t, open())
		})
	}
}
