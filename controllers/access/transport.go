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
	// maxAge is the age at which the Secret is reloaded without a failure, so that new credentials
	// are in use before the old ones expire.
	maxAge = 5 * time.Minute
	// pause is the shortest time between two loads after failed requests, which come in bursts.
	// While the Secret does not change, it doubles up to longPause. So an API server that is down
	// for long, or played, causes few requests to the cluster of the Secret.
	pause, longPause = time.Second, 4 * time.Minute
)

// Late returns a connection that reads its access when the first request needs it. Use it only as a
// rest.Config: no other field of the Config describes the access.
func Late(s Source) *rest.Config {
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	return &rest.Config{Host: s.Inside, Transport: &transport{source: s, turn: make(chan struct{}, 1)}}
}

// IsLate reports whether Late made a connection.
func IsLate(config *rest.Config) bool {
	_, is := config.Transport.(*transport)
	return is
}

// connectionOf returns the transport of a Config that Late made.
func connectionOf(config *rest.Config) *transport { return config.Transport.(*transport) }

// IsThere reports whether the access of a connection exists. It is true for a connection that Late
// did not make.
func IsThere(ctx context.Context, config *rest.Config) bool {
	t, is := config.Transport.(*transport)
	if !is {
		return true
	}
	_, err := t.find(ctx)
	return !IsMissing(err)
}

// CABundle returns the current CAs of the API server of a connection.
func CABundle(ctx context.Context, config *rest.Config) ([]byte, error) {
	t, is := config.Transport.(*transport)
	if !is {
		return config.CAData, nil
	}
	found, err := t.find(ctx)
	if err != nil {
		return nil, err
	}
	return found.caData, nil
}

// transport sends requests with access that it reads on demand.
type transport struct {
	source Source
	// turn is a lock that respects contexts; it guards the fields below.
	turn  chan struct{}
	found *found
	// readAt is the time of the last read of the Secret, problem its error.
	readAt  time.Time
	problem error
	// inVain is the current pause between reads that failed requests cause.
	inVain time.Duration
	// works means that the last response gave no reason to doubt the access.
	works atomic.Bool
}

// found is the access from the Secret, ready for requests.
type found struct {
	version string
	server  *url.URL
	caData  []byte
	sends   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	access, err := t.find(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := access.send(req)
	doubted, unsent := doubts(resp, err)
	if !doubted {
		t.works.Store(true)
	}
	if !doubted || req.Context().Err() != nil {
		return resp, addresses.Error(err)
	}
	next := t.instead(req.Context(), access)
	if next == nil || err != nil && !unsent {
		return resp, addresses.Error(err)
	}
	again, ok := rewound(req)
	if !ok {
		return resp, addresses.Error(err)
	}
	if resp != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
		resp.Body.Close()
	}
	resp, err = next.send(again)
	return resp, addresses.Error(err)
}

// find returns the cached access, and reads the Secret when the cache is too old.
func (t *transport) find(ctx context.Context) (*found, error) {
	if err := t.take(ctx); err != nil {
		return nil, err
	}
	defer t.leave()
	since := t.source.Clock.Since(t.readAt)
	if t.found != nil && since < maxAge || t.found == nil && t.problem != nil && since < pause {
		return t.found, t.problem
	}
	t.read(ctx)
	return t.found, t.problem
}

// instead returns access that replaces a failing one; nil if there is none.
func (t *transport) instead(ctx context.Context, of *found) *found {
	if t.take(ctx) != nil {
		return nil
	}
	defer t.leave()
	if t.works.Swap(false) {
		t.inVain = pause
	}
	if t.found == of && t.source.Clock.Since(t.readAt) >= t.inVain {
		t.read(ctx)
		t.inVain = min(max(2*t.inVain, pause), longPause)
	}
	if t.found == of {
		return nil
	}
	t.inVain = pause
	return t.found
}

// read reads the Secret. If that fails, the cached access stays: the cluster of the Secret may be
// down while the API server is up.
func (t *transport) read(ctx context.Context) {
	config, version, err := t.source.read(ctx)
	if ctx.Err() != nil && err != nil {
		if t.found == nil {
			t.readAt, t.problem = time.Time{}, err // the next caller may have more time
		}
		return
	}
	t.readAt, t.problem = t.source.Clock.Now(), nil
	switch {
	case err != nil && t.found == nil:
		t.problem = err
		return
	case err != nil, t.found != nil && t.found.version == version:
		return
	}
	next, err := use(config, version)
	if err != nil {
		if t.found == nil {
			t.problem = fmt.Errorf("access to %s, Secret %s: %w", t.source.Of, t.source.Secret, err)
		}
		return
	}
	if t.found != nil {
		utilnet.CloseIdleConnectionsFor(t.found.sends)
	}
	t.found = next
}

func (t *transport) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *transport) leave() { <-t.turn }

// use prepares access for requests.
func use(config *rest.Config, version string) (*found, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, errors.New("the kubeconfig in its Secret has no address that can be read")
	}
	sends, err := rest.TransportFor(config)
	if err != nil {
		// The cause may quote the certificates.
		return nil, errors.New("the certificates of the kubeconfig in its Secret cannot be used")
	}
	return &found{version: version, server: server, caData: config.CAData, sends: sends}, nil
}

// send sends a copy of a request to the server of the access.
func (f *found) send(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = f.server.Scheme, f.server.Host, ""
	if path := strings.TrimSuffix(f.server.Path, "/"); path != "" {
		out.URL.Path, out.URL.RawPath = path+out.URL.Path, ""
	}
	return f.sends.RoundTrip(out)
}

// doubts reports whether a response or error may be due to outdated access. unsent means that the
// API server cannot have seen the request.
func doubts(resp *http.Response, err error) (doubted, unsent bool) {
	if err == nil {
		return resp.StatusCode == http.StatusUnauthorized, true
	}
	return true, addresses.IsUnsent(err)
}

// rewound returns a copy of a sent request to send again; false if its body cannot be read twice.
func rewound(req *http.Request) (*http.Request, bool) {
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

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
