// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/addresses"
)

// RequestCounts is the number of requests by verb: get, list, watch, discovery, create, update,
// patch, patch-apply, delete; verbs of dry runs end in "-dry-run".
type RequestCounts map[string]int

// Sub returns the requests since an earlier count.
func (r RequestCounts) Sub(earlier RequestCounts) RequestCounts {
	out := RequestCounts{}
	for verb, n := range r {
		if d := n - earlier[verb]; d != 0 {
			out[verb] = d
		}
	}
	return out
}

// Writes returns the number of requests that may change the cluster.
func (r RequestCounts) Writes() int {
	return r["create"] + r["update"] + r["patch"] + r["patch-apply"] + r["delete"]
}

// UnreachableError says that a cluster did not answer. While the breaker is open it is returned at
// once.
type UnreachableError struct {
	Cluster, Host string
	Cause         error
}

func (e *UnreachableError) Error() string {
	if root := e.Root(); root != e {
		return fmt.Sprintf("the access to cluster %s is in cluster %s: %v", e.Cluster, root.Cluster, root)
	}
	return addresses.RedactUserInfo(fmt.Sprintf("cluster %s at %s does not answer: %v", e.Cluster, e.Host, e.Cause))
}
func (e *UnreachableError) Unwrap() error { return e.Cause }

// Root returns the error of the cluster that did not answer. It is another cluster if the access to
// this one is read there.
func (e *UnreachableError) Root() *UnreachableError {
	if inner, is := errors.AsType[*UnreachableError](e.Cause); is {
		return inner.Root()
	}
	return e
}

// ReportUnreachable makes the clients of config fail with an UnreachableError if no server saw
// their request. Clients of a Cluster do that anyway.
func ReportUnreachable(config *rest.Config, cluster string) {
	host := config.Host
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err != nil && req.Context().Err() == nil && addresses.IsConnectFailure(err) {
				err = &UnreachableError{Cluster: cluster, Host: host, Cause: err}
			}
			return resp, err
		})
	})
}

// clusterTransport is the part of the transport that all clients of one cluster share. It counts
// requests, limits those in flight, gives each a time limit, and fails at once while the cluster is
// down.
type clusterTransport struct {
	cluster, host     string
	clock             clock.Clock
	timeout, cooldown time.Duration
	slots             chan struct{}

	mu         sync.Mutex
	counts     RequestCounts
	downUntil  time.Time
	cause      error
	lastFailed bool // the last request that ended did not reach the server
}

func (g *clusterTransport) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return g.roundTrip(req, next) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (g *clusterTransport) roundTrip(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	verb := verbOf(req)
	if err := g.downError(); err != nil {
		return nil, err
	}
	if verb == "watch" {
		g.countRequest(verb)
		resp, err := g.startWatch(req, next)
		if errors.Is(err, errNoResponse) {
			// other requests may still be answered
			return nil, &UnreachableError{Cluster: g.cluster, Host: g.host, Cause: err}
		}
		return resp, g.recordResult(req.Context(), err)
	}
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if err := g.downError(); err != nil {
		return nil, err
	}
	g.countRequest(verb)
	sent, answered := startRequestSpan(req, g.cluster, verb)
	ctx, cancel := context.WithTimeoutCause(sent.Context(), g.timeout, errNoResponse)
	resp, err := next.RoundTrip(sent.WithContext(ctx))
	answered(resp, err)
	if err != nil {
		if errors.Is(context.Cause(ctx), errNoResponse) {
			err = fmt.Errorf("%w within %s", errNoResponse, g.timeout)
		}
		cancel()
		return nil, g.recordResult(req.Context(), err)
	}
	resp.Body = &cancelOnClose{ReadCloser: resp.Body, cancel: cancel}
	return resp, g.recordResult(req.Context(), nil)
}

// startWatch sends a long-running request and limits the time until its answer begins. A server
// answers a watch at once: without a limit, a server that does not would block all readers of the
// first list.
func (g *clusterTransport) startWatch(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	late := time.AfterFunc(g.timeout, func() { cancel(errNoResponse) })
	resp, err := next.RoundTrip(req.WithContext(ctx))
	if late.Stop(); err == nil {
		resp.Body = &cancelOnClose{ReadCloser: resp.Body, cancel: func() { cancel(nil) }}
		return resp, nil
	}
	if errors.Is(context.Cause(ctx), errNoResponse) {
		err = fmt.Errorf("%w within %s", errNoResponse, g.timeout)
	}
	cancel(nil)
	return nil, err
}

var errNoResponse = errors.New("no answer")

// recordResult records the end of a request and turns transport failures into UnreachableError.
func (g *clusterTransport) recordResult(ctx context.Context, err error) error {
	if err == nil {
		g.mu.Lock()
		g.lastFailed, g.cause, g.downUntil = false, nil, time.Time{}
		g.mu.Unlock()
		return nil
	}
	if ctx.Err() != nil || !isUnreachable(err) {
		return err
	}
	out := &UnreachableError{Cluster: g.cluster, Host: g.host, Cause: err}
	g.mu.Lock()
	g.lastFailed, g.cause, g.downUntil = true, err, g.clock.Now().Add(g.cooldown)
	g.mu.Unlock()
	return out
}

func (g *clusterTransport) downError() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != nil && g.clock.Now().Before(g.downUntil) {
		return &UnreachableError{Cluster: g.cluster, Host: g.host, Cause: g.cause}
	}
	return nil
}

func (g *clusterTransport) hasLastFailed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lastFailed
}

func (g *clusterTransport) countRequest(verb string) {
	g.mu.Lock()
	g.counts[verb]++
	g.mu.Unlock()
}

func (g *clusterTransport) snapshot() RequestCounts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.counts)
}

// isUnreachable reports whether the next request would fail as well. A connection that the server
// closed in between does not count.
func isUnreachable(err error) bool {
	var timeout net.Error
	return addresses.IsConnectFailure(err) || errors.Is(err, errNoResponse) || errors.As(err, &timeout) && timeout.Timeout()
}

type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

func verbOf(req *http.Request) string {
	verb := strings.ToLower(req.Method)
	query := req.URL.Query()
	switch req.Method {
	case http.MethodGet:
		if query.Get("watch") == "true" || query.Get("watch") == "1" {
			return "watch"
		}
		return readVerb(req.URL.Path)
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodPatch:
		if strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch") {
			verb = "patch-apply"
		}
	}
	if query.Get("dryRun") != "" {
		verb += "-dry-run"
	}
	return verb
}

// readVerb distinguishes list, get and discovery by the shape of the path.
func readVerb(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return "discovery"
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) == 1 {
		return "list"
	}
	return "get"
}
