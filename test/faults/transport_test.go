// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// requestFault is the fault of a request.
type requestFault struct {
	isUnsent     bool // it does not reach the server
	isAnswerLost bool // it is processed, but the answer is lost
	statusCode   int  // the answer has this status; unless lost, it is not processed
	retryAfter   int  // with code 429: seconds to wait
	// it is in flight until this is closed, even without a waiting caller
	until chan struct{}
}

// sentRequest is a request that left a process.
type sentRequest struct{ verb, path string }

// transport transports the requests of a process.
type transport struct {
	mu            sync.Mutex
	isDown        bool
	faultFor      func(*http.Request) requestFault
	writeRequests []sentRequest // all possible changes
	expiredCount  int           // answers and events with code 410
	openWatches   map[*watchStream]bool
	delayed       sync.WaitGroup // delayed requests
}

// wrapTransport returns the transport of a process.
func (l *transport) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return l.sendRequest(req, next) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (l *transport) sendRequest(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	f := l.nextFault(req)
	if f.until != nil {
		return l.delayRequest(req, next, f.until)
	}
	switch {
	case f.isUnsent:
		return failRequest(req, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	case f.statusCode != 0 && !f.isAnswerLost:
		_, _ = failRequest(req, nil)
		return errorResponse(req, f), nil
	}
	answer, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if f.isAnswerLost {
		if !isWatch(req) {
			_, _ = io.Copy(io.Discard, answer.Body)
		}
		_ = answer.Body.Close()
		if f.statusCode != 0 {
			return errorResponse(req, f), nil
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	if isWatch(req) {
		if answer.StatusCode == http.StatusGone {
			l.countExpiry()
		} else {
			answer.Body = l.trackWatch(answer.Body)
		}
	}
	return answer, nil
}

func (l *transport) nextFault(req *http.Request) requestFault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDown {
		return requestFault{isUnsent: true}
	}
	f := requestFault{}
	if l.faultFor != nil {
		f = l.faultFor(req)
	}
	if f.until != nil {
		l.delayed.Add(1)
	}
	switch {
	case req.Method == http.MethodGet:
	case req.URL.Query().Get("dryRun") == "" && (!f.isUnsent && f.statusCode == 0 || f.isAnswerLost):
		l.writeRequests = append(l.writeRequests, sentRequest{req.Method, req.URL.Path})
	}
	return f
}

func failRequest(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, err
}

func errorResponse(req *http.Request, f requestFault) *http.Response {
	reason := map[int]string{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout", 410: "Expired"}[f.statusCode]
	text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"injected","code":%d}`, reason, f.statusCode)
	header := http.Header{"Content-Type": {"application/json"}}
	if f.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	return &http.Response{Status: http.StatusText(f.statusCode), StatusCode: f.statusCode, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: header, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}
}

func isWatch(req *http.Request) bool { return req.URL.Query().Get("watch") != "" }

// watchStream are a watch stream: expiry is detected in it, and it can be closed.
type watchStream struct {
	io.ReadCloser
	line     *transport
	isClosed atomic.Bool
}

func (l *transport) trackWatch(body io.ReadCloser) *watchStream {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.openWatches == nil {
		l.openWatches = map[*watchStream]bool{}
	}
	e := &watchStream{ReadCloser: body, line: l}
	l.openWatches[e] = true
	return e
}

func (e *watchStream) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if bytes.Contains(p[:n], []byte(`"type":"ERROR"`)) && bytes.Contains(p[:n], []byte(`"code":410`)) {
		e.line.countExpiry()
	}
	if err != nil && e.isClosed.Load() {
		err = io.EOF
	}
	return n, err
}

func (e *watchStream) Close() error {
	e.line.mu.Lock()
	delete(e.line.openWatches, e)
	e.line.mu.Unlock()
	return e.ReadCloser.Close()
}

// closeWatches ends all watches, as servers do every few minutes.
func (l *transport) closeWatches() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.openWatches))
	l.mu.Unlock()
	for _, e := range open {
		e.isClosed.Store(true)
		_ = e.Close()
	}
}

// delayRequest sends a request late, even if its caller gives up.
func (l *transport) delayRequest(req *http.Request, next http.RoundTripper, until <-chan struct{}) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		_ = req.Body.Close()
	}
	type outcome struct {
		answer *http.Response
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer l.delayed.Done()
		<-until
		late := req.Clone(context.WithoutCancel(req.Context()))
		late.Body = io.NopCloser(bytes.NewReader(body))
		answer, err := next.RoundTrip(late)
		done <- outcome{answer, err}
	}()
	select {
	case o := <-done:
		return o.answer, o.err
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (l *transport) countExpiry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expiredCount++
}

// faultAt gives the n-th request from now on, except watches, a fate; with cut, no later request
// reaches the server. The channel is closed at that request.
func (l *transport) faultAt(n int, f requestFault, cut bool) (hit <-chan struct{}) {
	done, seen := make(chan struct{}), 0
	l.setFaults(func(req *http.Request) requestFault {
		if isWatch(req) {
			return requestFault{}
		}
		if seen++; seen != n {
			return requestFault{}
		}
		close(done)
		l.isDown = cut
		return f
	})
	return done
}

// callAt calls do before the n-th non-GET request from now on.
func (l *transport) callAt(n int, do func()) (done <-chan struct{}) {
	ended, seen := make(chan struct{}), 0
	l.setFaults(func(req *http.Request) requestFault {
		if req.Method != http.MethodGet {
			if seen++; seen == n {
				do()
				close(ended)
			}
		}
		return requestFault{}
	})
	return ended
}

// setFaults decides about the requests from now on; nil means no faults. The function is called for
// one request at a time.
func (l *transport) setFaults(decide func(*http.Request) requestFault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faultFor = decide
}

func (l *transport) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isDown = true
}

// writesSoFar returns all requests so far that may have changed something.
func (l *transport) writesSoFar() []sentRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.writeRequests)
}

func (l *transport) expiryCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expiredCount
}
