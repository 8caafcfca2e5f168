// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// slowProxy is a connection to the API server that can be slow or silently dead.
type slowProxy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu    sync.Mutex
	delay time.Duration // delay of all data
	pairs map[*connectionPair]bool
}

// connectionPair has both ends of a connection.
type connectionPair struct {
	in, out  net.Conn
	mu       sync.Mutex
	isFrozen bool // data is dropped silently
	ended    chan struct{}
	once     sync.Once
}

func newWire(t testing.TB) *slowProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	target, err := url.Parse(suite.config.Host)
	require.NoError(t, err)
	w := &slowProxy{listener: listener, target: target.Host, pairs: map[*connectionPair]bool{}}
	w.group.Go(w.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		for p := range w.pairs {
			p.close()
		}
		w.mu.Unlock()
		w.group.Wait()
	})
	return w
}

// config is the API server behind the wire.
func (w *slowProxy) config() *rest.Config {
	config := rest.CopyConfig(suite.config)
	config.Host = "https://" + w.listener.Addr().String()
	config.ServerName = "127.0.0.1"
	return config
}

func (w *slowProxy) accept() {
	for {
		in, err := w.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		p := &connectionPair{in: in, out: out, ended: make(chan struct{})}
		w.mu.Lock()
		w.pairs[p] = true
		w.mu.Unlock()
		w.group.Go(func() { w.copyData(p, p.in, p.out) })
		w.group.Go(func() { w.copyData(p, p.out, p.in) })
	}
}

func (p *connectionPair) close() {
	p.once.Do(func() {
		close(p.ended)
		_ = p.in.Close()
		_ = p.out.Close()
	})
}

func (w *slowProxy) copyData(p *connectionPair, from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		pause := w.delay
		w.mu.Unlock()
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-p.ended:
			}
		}
		p.mu.Lock()
		frozen := p.isFrozen
		p.mu.Unlock()
		if frozen {
			if from == p.out || err != nil {
				<-p.ended // the server may close its end; the process does not notice
				return
			}
			continue // data from the process is accepted, as by a kernel
		}
		if n > 0 {
			_, werr := to.Write(buffer[:n])
			if werr != nil {
				err = werr
			}
		}
		if err != nil {
			p.close()
			w.mu.Lock()
			delete(w.pairs, p)
			w.mu.Unlock()
			return
		}
	}
}

// freezeAll makes all connections dead silently; new ones work.
func (w *slowProxy) freezeAll() (frozen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.pairs {
		p.mu.Lock()
		p.isFrozen = true
		p.mu.Unlock()
	}
	return len(w.pairs)
}

func (w *slowProxy) setDelay(pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = pause
}
