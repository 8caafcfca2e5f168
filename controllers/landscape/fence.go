package landscape

import (
	"errors"
	"net/http"
)

// ErrUnsure is what a write gets when somebody else may work already.
var ErrUnsure = errors.New("nothing is written: the lease was not renewed in time, so that another instance may work already")

// fence lets nothing be written to a cluster once somebody else may work: a process that was
// stopped in the middle of its work, and goes on when its successor is done, learns only with the
// next renewal that it lost the lease.
type fence struct {
	next http.RoundTripper
	sure func() bool
}

// Fence makes what is put before a connection (rest.Config.Wrap): while sure says false, writes
// fail with ErrUnsure, and all else passes. The connection that renews the lease must have none.
func Fence(sure func() bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return fence{next, sure} }
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		if !f.sure() {
			if r.Body != nil {
				_ = r.Body.Close() // as the contract of RoundTripper asks for
			}
			return nil, ErrUnsure
		}
	}
	return f.next.RoundTrip(r)
}
