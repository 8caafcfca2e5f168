// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// maxServers is the number of servers from which on idle ones get other definitions; each takes
// about 400 MB. More servers start only if all are in use.
const maxServers = 6

// pool has the idle servers, the most recently used one last.
type pool struct {
	mu      sync.Mutex
	idle    []*server
	started int
	stopped bool
}

func (p *pool) serve(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return // the listener is closed at the end of the run
		}
		go p.lease(connection)
	}
}

// lease answers a request, and takes the server back when the connection ends.
func (p *pool) lease(connection net.Conn) {
	defer connection.Close()
	var request apiserver.Request
	if err := json.NewDecoder(connection).Decode(&request); err != nil {
		return // another run checks whether the socket is in use
	}
	s, err := p.acquire(request.Definitions)
	if err != nil {
		_ = json.NewEncoder(connection).Encode(apiserver.Response{Error: err.Error()})
		return
	}
	if err := json.NewEncoder(connection).Encode(s.leaseResponse()); err == nil {
		_, _ = io.Copy(io.Discard, connection)
	}
	p.release(s)
}

// acquire returns a server with exactly these definitions.
func (p *pool) acquire(definitions []*apiextensionsv1.CustomResourceDefinition) (*server, error) {
	digest, err := digestDefinitions(definitions)
	if err != nil {
		return nil, err
	}
	s := p.takeIdle(digest)
	if s != nil {
		if err := s.reset(digest); err != nil {
			fmt.Fprintln(os.Stderr, "pool of API servers: one could not be restored, and is stopped:", err)
			s.stop()
			s = nil
		}
	}
	if s == nil {
		if s, err = startServer(); err != nil {
			p.decrementStarted()
			return nil, err
		}
	}
	if err := s.installDefinitions(digest, definitions); err != nil {
		s.stop()
		p.decrementStarted()
		return nil, err
	}
	return s, nil
}

// takeIdle removes an idle server from the pool: with the same definitions, else without any, else,
// from maxServers on, the least recently used one. It returns nil if a new server must start.
func (p *pool) takeIdle(digest string) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wanted := range []string{digest, ""} {
		if i := slices.IndexFunc(p.idle, func(s *server) bool { return s.definitionsDigest == wanted }); i >= 0 {
			return p.removeIdle(i)
		}
	}
	if p.started >= maxServers && len(p.idle) > 0 {
		return p.removeIdle(0)
	}
	p.started++
	return nil
}

func (p *pool) removeIdle(i int) *server {
	s := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return s
}

// release makes a server idle. acquire restores its content later: until then, a process that ends
// late may still write.
func (p *pool) release(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		s.stop()
		return
	}
	p.idle = append(p.idle, s)
}

func (p *pool) decrementStarted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started--
}

// stop ends all idle servers; the others end with this process.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, s := range p.idle {
		s.stop()
	}
}

// digestDefinitions returns the digest of definitions, or "" without any.
func digestDefinitions(definitions []*apiextensionsv1.CustomResourceDefinition) (string, error) {
	if len(definitions) == 0 {
		return "", nil
	}
	text, err := json.Marshal(definitions)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
