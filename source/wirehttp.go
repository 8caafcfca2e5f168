// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

const (
	userAgent = "git/pergola"
	// maxRedirects is the maximum number of redirects of the request for references; like Git, no
	// other request follows redirects.
	maxRedirects = 5
)

// httpWire implements Git's smart HTTP protocol.
type httpWire struct {
	client      *http.Client
	transport   *http.Transport
	credentials Credentials
	repository  *url.URL
	// base is the source of the last list of references, which differs after a redirect.
	base atomic.Pointer[url.URL]
}

func newHTTPWire(options Options, location *url.URL) *httpWire {
	transport := httpTransport(options)
	w := &httpWire{transport: transport, credentials: options.Credentials, repository: location}
	w.base.Store(location)
	w.client = &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case next.Method != http.MethodGet || len(via) > maxRedirects:
			return http.ErrUseLastResponse
		case next.URL.Scheme != via[0].URL.Scheme && next.URL.Scheme != "https":
			return http.ErrUseLastResponse
		case next.URL.Host != via[0].URL.Host:
			// Another server must not see the credentials, and without them the repository may be
			// another one.
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return w
}

// httpTransport uses only the given proxy and certificates.
func httpTransport(options Options) *http.Transport {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 2,
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if options.Proxy.address != nil {
		transport.Proxy = http.ProxyURL(options.Proxy.address)
	}
	if len(options.Credentials.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(options.Credentials.CA)
		transport.TLSClientConfig.RootCAs = pool
	}
	if options.Credentials.Certificate != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*options.Credentials.Certificate}
	}
	return transport
}

func (w *httpWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	address := *w.repository
	address.Path = strings.TrimSuffix(address.Path, "/") + "/info/refs"
	address.RawPath = ""
	address.RawQuery = "service=git-upload-pack"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := w.sendRequest(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "application/x-git-upload-pack-advertisement" {
		return nil, newError(ReasonRepositoryNotFound, "%s is not a Git repository: the server answers with %q", w.repository.Redacted(), boundedLine(kind, 60))
	}
	base := *response.Request.URL
	base.RawQuery = ""
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/info/refs"), ""
	w.base.Store(&base)
	return readReferences(response.Body)
}

func (w *httpWire) pack(ctx context.Context, request *packp.UploadPackRequest) (*pack, error) {
	var body bytes.Buffer
	if err := writeRequest(&body, request); err != nil {
		return nil, err
	}
	address := *w.base.Load()
	address.Path, address.RawPath = strings.TrimSuffix(address.Path, "/")+"/git-upload-pack", ""
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), &body)
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	post.Header.Set("Accept", "application/x-git-upload-pack-result")
	response, err := w.sendRequest(post)
	if err != nil {
		return nil, err
	}
	return readPack(request, response.Body)
}

// writeRequest encodes the wanted and the known commits.
func writeRequest(out io.Writer, request *packp.UploadPackRequest) error {
	if err := request.UploadRequest.Encode(out); err != nil {
		return fmt.Errorf("ask for commits: %w", err)
	}
	if err := request.UploadHaves.Encode(out, false); err != nil {
		return fmt.Errorf("ask for commits: %w", err)
	}
	return pktline.NewEncoder(out).EncodeString("done\n")
}

// sendRequest sends a request. It drops error bodies, which may repeat credentials.
func (w *httpWire) sendRequest(request *http.Request) (*http.Response, error) {
	request.Header.Set("User-Agent", userAgent)
	switch {
	case w.credentials.BearerToken != "":
		request.Header.Set("Authorization", "Bearer "+w.credentials.BearerToken)
	case w.credentials.Username != "":
		request.SetBasicAuth(w.credentials.Username, w.credentials.Password)
	}
	response, err := w.client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	_ = response.Body.Close()
	return nil, statusError(response, w.repository.Redacted())
}

// statusError derives the reason from the status of an error answer.
func statusError(response *http.Response, where string) error {
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized:
		return newError(ReasonAuthenticationFailed, "%s: the server rejects the credentials (401): they are missing, wrong or expired", where)
	case code == http.StatusForbidden:
		return newError(ReasonAuthenticationFailed, "%s: the credentials may not read this repository (403)", where)
	case code == http.StatusNotFound || code == http.StatusGone:
		return newError(ReasonRepositoryNotFound, "%s: no such repository, or these credentials do not show it (%d)", where, code)
	case code == http.StatusProxyAuthRequired:
		return newError(ReasonAuthenticationFailed, "%s: the proxy rejects its credentials (407)", where)
	case code >= 300 && code < 400:
		return newError(ReasonRepositoryNotFound, "%s: the repository was moved to another server (%d): change the url", where, code)
	default:
		return newError(ReasonUnreachable, "%s: the server answers with status %d", where, code)
	}
}

func (w *httpWire) close() error {
	w.transport.CloseIdleConnections()
	return nil
}
