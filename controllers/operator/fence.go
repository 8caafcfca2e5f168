package operator

import (
	"errors"
	"net/http"
)

// errUnsure is what a write gets when somebody else may work already.
var errUnsure = errors.New("nothing is written: the lease was not renewed in time, so that another instance may work already")

// sure tells whether nobody else can be at work.
func (p *parts) sure() bool {
	p.mu.Lock()
	lease := p.lease
	p.mu.Unlock()
	return lease != nil && lease.Sure()
}

// fence lets nothing be written to a cluster once somebody else may work: a process that was stopped in the middle of a sync, and goes on when
// its successor is done, learns only with the next renewal that it lost the lease.
type fence struct {
	next http.RoundTripper
	sure func() bool
}

// fenced puts a fence before a connection.
func (p *parts) fenced(next http.RoundTripper) http.RoundTripper { return fence{next, p.sure} }

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		if !f.sure() {
			if r.Body != nil {
				_ = r.Body.Close() // as the contract of RoundTripper asks for
			}
			return nil, errUnsure
		}
	}
	return f.next.RoundTrip(r)
}
