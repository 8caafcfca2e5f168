// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/addresses"
)

const (
	// maxSecretAge is the age at which the Secret is reloaded without a failure, so that new
	// credentials are in use before the old ones expire.
	maxSecretAge = 5 * time.Minute
	// minReloadPause is the shortest time between two loads after failed requests, which come in
	// bursts. While the Secret does not change, it doubles up to maxReloadPause. So an API server
	// that is down for long, or played, causes few requests to the cluster of the Secret.
	minReloadPause, maxReloadPause = time.Second, 4 * time.Minute
)

// LazyConfig returns a connection that reads its access when the first request needs it. Use it
// only as a rest.Config: no other field of the Config describes the access.
func LazyConfig(s Source) *rest.Config {
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	return &rest.Config{Host: s.InternalURL, Transport: &lazyTransport{source: s, lock: make(chan struct{}, 1)}}
}

// IsLazyConfig reports whether LazyConfig made a connection.
func IsLazyConfig(config *rest.Config) bool {
	_, is := config.Transport.(*lazyTransport)
	return is
}

// transportOf returns the transport of a Config that LazyConfig made.
func transportOf(config *rest.Config) *lazyTransport { return config.Transport.(*lazyTransport) }

// HasCredentials reports whether the access of a connection exists. It is true for a connection
// that LazyConfig did not make.
func HasCredentials(ctx context.Context, config *rest.Config) bool {
	t, is := config.Transport.(*lazyTransport)
	if !is {
		return true
	}
	_, err := t.connection(ctx)
	return !IsMissing(err)
}

// CABundle returns the current CAs of the API server of a connection.
func CABundle(ctx context.Context, config *rest.Config) ([]byte, error) {
	t, is := config.Transport.(*lazyTransport)
	if !is {
		return config.CAData, nil
	}
	found, err := t.connection(ctx)
	if err != nil {
		return nil, err
	}
	return found.caData, nil
}

// lazyTransport sends requests with access that it reads on demand.
type lazyTransport struct {
	source Source
	// lock is a lock that respects contexts; it guards the fields below.
	lock    chan struct{}
	current *apiConnection
	// loadedAt is the time of the last read of the Secret; loadError is its error.
	loadedAt  time.Time
	loadError error
	// retryPause is the current pause between reads that failed requests cause.
	retryPause time.Duration
	// isWorking means that the last response gave no reason to doubt the access.
	isWorking atomic.Bool
}

// apiConnection is the access from the Secret, ready for requests.
type apiConnection struct {
	version      string
	server       *url.URL
	caData       []byte
	roundTripper http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *lazyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	access, err := t.connection(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := access.send(req)
	doubted, unsent := classifyFailure(resp, err)
	if !doubted {
		t.isWorking.Store(true)
	}
	if !doubted || req.Context().Err() != nil {
		return resp, addresses.RedactError(err)
	}
	next := t.replacementFor(req.Context(), access)
	if next == nil || err != nil && !unsent {
		return resp, addresses.RedactError(err)
	}
	again, ok := rewindRequest(req)
	if !ok {
		return resp, addresses.RedactError(err)
	}
	if resp != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
		resp.Body.Close()
	}
	resp, err = next.send(again)
	return resp, addresses.RedactError(err)
}

// connection returns the cached access, and reads the Secret when the cache is too old.
func (t *lazyTransport) connection(ctx context.Context) (*apiConnection, error) {
	if err := t.acquireLock(ctx); err != nil {
		return nil, err
	}
	defer t.releaseLock()
	since := t.source.Clock.Since(t.loadedAt)
	if t.current != nil && since < maxSecretAge || t.current == nil && t.loadError != nil && since < minReloadPause {
		return t.current, t.loadError
	}
	t.reload(ctx)
	return t.current, t.loadError
}

// replacementFor returns access that replaces a failing one, or nil if there is none.
func (t *lazyTransport) replacementFor(ctx context.Context, of *apiConnection) *apiConnection {
	if t.acquireLock(ctx) != nil {
		return nil
	}
	defer t.releaseLock()
	if t.isWorking.Swap(false) {
		t.retryPause = minReloadPause
	}
	if t.current == of && t.source.Clock.Since(t.loadedAt) >= t.retryPause {
		t.reload(ctx)
		t.retryPause = min(max(2*t.retryPause, minReloadPause), maxReloadPause)
	}
	if t.current == of {
		return nil
	}
	t.retryPause = minReloadPause
	return t.current
}

// reload reads the Secret. If that fails, the cached access stays: the cluster of the Secret may be
// down while the API server is up.
func (t *lazyTransport) reload(ctx context.Context) {
	config, version, err := t.source.loadConfig(ctx)
	if ctx.Err() != nil && err != nil {
		if t.current == nil {
			t.loadedAt, t.loadError = time.Time{}, err // the next caller may have more time
		}
		return
	}
	t.loadedAt, t.loadError = t.source.Clock.Now(), nil
	switch {
	case err != nil && t.current == nil:
		t.loadError = err
		return
	case err != nil, t.current != nil && t.current.version == version:
		return
	}
	next, err := newConnection(config, version)
	if err != nil {
		if t.current == nil {
			t.loadError = fmt.Errorf("access to %s, Secret %s: %w", t.source.Target, t.source.Secret, err)
		}
		return
	}
	if t.current != nil {
		utilnet.CloseIdleConnectionsFor(t.current.roundTripper)
	}
	t.current = next
}

func (t *lazyTransport) acquireLock(ctx context.Context) error {
	select {
	case t.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *lazyTransport) releaseLock() { <-t.lock }

// newConnection prepares access for requests.
func newConnection(config *rest.Config, version string) (*apiConnection, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, errors.New("the kubeconfig in its Secret has no valid address")
	}
	sends, err := rest.TransportFor(config)
	if err != nil {
		// The cause may quote the certificates.
		return nil, errors.New("the certificates of the kubeconfig in its Secret cannot be used")
	}
	return &apiConnection{version: version, server: server, caData: config.CAData, roundTripper: sends}, nil
}

// send sends a copy of a request to the server of the access.
func (f *apiConnection) send(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = f.server.Scheme, f.server.Host, ""
	if path := strings.TrimSuffix(f.server.Path, "/"); path != "" {
		out.URL.Path, out.URL.RawPath = path+out.URL.Path, ""
	}
	return f.roundTripper.RoundTrip(out)
}

// classifyFailure reports whether a response or error may be due to outdated access. unsent means
// that the API server cannot have seen the request.
func classifyFailure(resp *http.Response, err error) (doubted, unsent bool) {
	if err == nil {
		return resp.StatusCode == http.StatusUnauthorized, true
	}
	return true, addresses.IsConnectFailure(err)
}

// rewindRequest returns a copy of a sent request to send again, or false if its body cannot be read
// twice.
func rewindRequest(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	out := req.Clone(req.Context())
	out.Body = body
	return out, true
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

func sha256Hex(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
