// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"errors"
	"net/http"
)

// ErrLeaseUncertain is the error of a write when another process may hold the lease already.
var ErrLeaseUncertain = errors.New("nothing is written: the lease was not renewed in time, so another instance may be active")

// writeFence blocks writes to a cluster once another process may hold the lease. A process that was
// paused, and continues after its successor took over, learns about the lost lease only with the
// next renewal.
type writeFence struct {
	next        http.RoundTripper
	isLeaseSure func() bool
}

// NewWriteFence returns a wrapper for a connection (rest.Config.Wrap): while sure returns false,
// writes fail with ErrLeaseUncertain. The connection that renews the lease must not have one.
func NewWriteFence(sure func() bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return writeFence{next, sure} }
}

// RoundTrip implements http.RoundTripper.
func (f writeFence) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		if !f.isLeaseSure() {
			if r.Body != nil {
				_ = r.Body.Close() // required by the contract of RoundTripper
			}
			return nil, ErrLeaseUncertain
		}
	}
	return f.next.RoundTrip(r)
}
