// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
)

// IsConnectFailure reports whether an error means that the request did not reach its host: no
// connection was made, or the host is not trusted.
func IsConnectFailure(err error) bool {
	var (
		op      *net.OpError
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
	)
	return errors.As(err, &dns) || errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &host) ||
		errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || isProxyConnectFailure(err)
}

// isProxyConnectFailure reports whether a proxy could not connect to the host of a request.
// http.Transport returns the status text of the answer to CONNECT as an error without a type.
func isProxyConnectFailure(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.Error() {
		case http.StatusText(http.StatusBadGateway), http.StatusText(http.StatusServiceUnavailable), http.StatusText(http.StatusGatewayTimeout):
			return true
		}
	}
	return false
}
