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

// fate is the fault of a request.
type fate struct {
	unreached bool          // it does not reach the server
	lost      bool          // it is processed, but the answer is lost
	code      int           // the answer has this status; unless lost, it is not processed
	after     int           // with code 429: seconds to wait
	late      chan struct{} // it is in flight until this is closed, even without a waiting caller
}

// request is a request that left a process.
type request struct{ verb, path string }

// line transports the requests of a process.
type line struct {
	mu     sync.Mutex
	down   bool
	decide func(*http.Request) fate
	sent   []request // all possible changes
	gone   int       // answers and events with code 410
	open   map[*events]bool
	late   sync.WaitGroup // delayed requests
}

// to returns the transport of a process.
func (l *line) to(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return l.send(req, next) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (l *line) send(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	f := l.fateOf(req)
	if f.late != nil {
		return l.delay(req, next, f.late)
	}
	switch {
	case f.unreached:
		return drop(req, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	case f.code != 0 && !f.lost:
		_, _ = drop(req, nil)
		return refusal(req, f), nil
	}
	answer, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if f.lost {
		if !isWatch(req) {
			_, _ = io.Copy(io.Discard, answer.Body)
		}
		_ = answer.Body.Close()
		if f.code != 0 {
			return refusal(req, f), nil
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	if isWatch(req) {
		if answer.StatusCode == http.StatusGone {
			l.expired()
		} else {
			answer.Body = l.follow(answer.Body)
		}
	}
	return answer, nil
}

func (l *line) fateOf(req *http.Request) fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return fate{unreached: true}
	}
	f := fate{}
	if l.decide != nil {
		f = l.decide(req)
	}
	if f.late != nil {
		l.late.Add(1)
	}
	switch {
	case req.Method == http.MethodGet:
	case req.URL.Query().Get("dryRun") == "" && (!f.unreached && f.code == 0 || f.lost):
		l.sent = append(l.sent, request{req.Method, req.URL.Path})
	}
	return f
}

func drop(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, err
}

func refusal(req *http.Request, f fate) *http.Response {
	reason := map[int]string{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout", 410: "Expired"}[f.code]
	text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"injected","code":%d}`, reason, f.code)
	header := http.Header{"Content-Type": {"application/json"}}
	if f.after > 0 {
		header.Set("Retry-After", strconv.Itoa(f.after))
	}
	return &http.Response{Status: http.StatusText(f.code), StatusCode: f.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: header, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}
}

func isWatch(req *http.Request) bool { return req.URL.Query().Get("watch") != "" }

// events are a watch stream: expiry is detected in it, and it can be closed.
type events struct {
	io.ReadCloser
	line *line
	over atomic.Bool
}

func (l *line) follow(body io.ReadCloser) *events {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*events]bool{}
	}
	e := &events{ReadCloser: body, line: l}
	l.open[e] = true
	return e
}

func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if bytes.Contains(p[:n], []byte(`"type":"ERROR"`)) && bytes.Contains(p[:n], []byte(`"code":410`)) {
		e.line.expired()
	}
	if err != nil && e.over.Load() {
		err = io.EOF
	}
	return n, err
}

func (e *events) Close() error {
	e.line.mu.Lock()
	delete(e.line.open, e)
	e.line.mu.Unlock()
	return e.ReadCloser.Close()
}

// hangUp ends all watches, as servers do every few minutes.
func (l *line) hangUp() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, e := range open {
		e.over.Store(true)
		_ = e.Close()
	}
}

// delay sends a request late, even if its caller gives up.
func (l *line) delay(req *http.Request, next http.RoundTripper, until <-chan struct{}) (*http.Response, error) {
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
		defer l.late.Done()
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

func (l *line) expired() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone++
}

// arm gives the n-th request from now on, except watches, a fate; with cut, no later request
// reaches the server. The channel is closed at that request.
func (l *line) arm(n int, f fate, cut bool) (hit <-chan struct{}) {
	done, seen := make(chan struct{}), 0
	l.use(func(req *http.Request) fate {
		if isWatch(req) {
			return fate{}
		}
		if seen++; seen != n {
			return fate{}
		}
		close(done)
		l.down = cut
		return f
	})
	return done
}

// at calls do before the n-th non-GET request from now on.
func (l *line) at(n int, do func()) (done <-chan struct{}) {
	ended, seen := make(chan struct{}), 0
	l.use(func(req *http.Request) fate {
		if req.Method != http.MethodGet {
			if seen++; seen == n {
				do()
				close(ended)
			}
		}
		return fate{}
	})
	return ended
}

// use decides about the requests from now on; nil means no faults. The function is called for one
// request at a time.
func (l *line) use(decide func(*http.Request) fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decide = decide
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
}

// writes returns all requests so far that may have changed something.
func (l *line) writes() []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

func (l *line) expiries() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}
