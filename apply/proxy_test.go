// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var deleteNow = metav1.DeleteOptions{}

func replaceText(text, old, new string) string { return strings.ReplaceAll(text, old, new) }

// proxy forwards connections to the API server, and stop cuts all of them.
type proxy struct {
	testing.TB
	mu       sync.Mutex
	listener net.Listener
	address  string
	open     []net.Conn
}

func newProxy(t testing.TB) *proxy {
	p := &proxy{TB: t, address: "127.0.0.1:0"}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) Addr() net.Addr { return p.listener.Addr() }

func (p *proxy) start() {
	l, err := net.Listen("tcp", p.address)
	require.NoError(p, err)
	p.listener, p.address = l, l.Addr().String()
	target, err := url.Parse(server.config.Host)
	require.NoError(p, err)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target.Host)
			if err != nil {
				_ = in.Close()
				return
			}
			p.mu.Lock()
			p.open = append(p.open, in, out)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(in, out) }()
			go func() { _, _ = io.Copy(out, in) }()
		}
	}()
}

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}
