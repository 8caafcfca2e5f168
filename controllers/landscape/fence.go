package landscape

import (
	"errors"
	"net/http"
)

// ErrUnsure is the error of a write when another process may hold the lease already.
var ErrUnsure = errors.New("nothing is written: the lease was not renewed in time, so that another instance may work already")

// fence blocks writes to a cluster once another process may hold the lease. A process that was
// paused, and continues after its successor took over, learns about the lost lease only with the
// next renewal.
type fence struct {
	next http.RoundTripper
	sure func() bool
}

// Fence returns a wrapper for a connection (rest.Config.Wrap): while sure returns false, writes
// fail with ErrUnsure. The connection that renews the lease must not have one.
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
				_ = r.Body.Close() // required by the contract of RoundTripper
			}
			return nil, ErrUnsure
		}
	}
	return f.next.RoundTrip(r)
}
