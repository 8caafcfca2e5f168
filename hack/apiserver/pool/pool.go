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

// maxServers is how many are started before one gets other definitions than it has; each takes
// about 400 MB. More are started only where all are in use.
const maxServers = 6

// pool has the servers that nobody uses, the one that was used last at the end.
type pool struct {
	mu      sync.Mutex
	idle    []*server
	started int
	ended   bool
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
		return // somebody looks whether the socket is in use
	}
	s, err := p.take(request.Definitions)
	if err != nil {
		_ = json.NewEncoder(connection).Encode(apiserver.Answer{Error: err.Error()})
		return
	}
	if err := json.NewEncoder(connection).Encode(s.answer()); err == nil {
		_, _ = io.Copy(io.Discard, connection)
	}
	p.giveBack(s)
}

// take gives a server with exactly these definitions.
func (p *pool) take(definitions []*apiextensionsv1.CustomResourceDefinition) (*server, error) {
	digest, err := digestOf(definitions)
	if err != nil {
		return nil, err
	}
	s := p.choose(digest)
	if s != nil {
		if err := s.reset(digest); err != nil {
			fmt.Fprintln(os.Stderr, "pool of API servers: one could not be restored, and is stopped:", err)
			s.stop()
			s = nil
		}
	}
	if s == nil {
		if s, err = startServer(); err != nil {
			p.lost()
			return nil, err
		}
	}
	if err := s.define(digest, definitions); err != nil {
		s.stop()
		p.lost()
		return nil, err
	}
	return s, nil
}

// choose takes an idle server out of the pool: one with the same definitions, one without any, or,
// where there are enough, the one that was not used longest.
func (p *pool) choose(digest string) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wanted := range []string{digest, ""} {
		if i := slices.IndexFunc(p.idle, func(s *server) bool { return s.definitions == wanted }); i >= 0 {
			return p.remove(i)
		}
	}
	if p.started >= maxServers && len(p.idle) > 0 {
		return p.remove(0)
	}
	p.started++
	return nil
}

func (p *pool) remove(i int) *server {
	s := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return s
}

// giveBack takes a server that nobody uses any more. Its content is restored when it is taken
// again: until then, a process that ends late may still write.
func (p *pool) giveBack(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		s.stop()
		return
	}
	p.idle = append(p.idle, s)
}

func (p *pool) lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started--
}

// stop ends all that are idle; the others end with this process.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, s := range p.idle {
		s.stop()
	}
}

// digestOf is empty for no definitions.
func digestOf(definitions []*apiextensionsv1.CustomResourceDefinition) (string, error) {
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
