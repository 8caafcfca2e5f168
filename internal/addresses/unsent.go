package addresses

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
)

// IsUnsent tells whether an error says that no connection was made to where a request should go, or
// none that is trusted: it was not seen there.
func IsUnsent(err error) bool {
	var (
		op      *net.OpError
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
	)
	return errors.As(err, &dns) || errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &host) ||
		errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || isProxyRefusal(err)
}

// isProxyRefusal tells whether a proxy has answered that it gets no connection to where a request
// should go. Of the answer to CONNECT http.Transport gives the text of the status as an error
// without a type.
func isProxyRefusal(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.Error() {
		case http.StatusText(http.StatusBadGateway), http.StatusText(http.StatusServiceUnavailable), http.StatusText(http.StatusGatewayTimeout):
			return true
		}
	}
	return false
}
