package addresses

import (
	"errors"
	"net/http"
)

// IsProxyRefusal tells whether a proxy has answered that it gets no connection to where a request should go. Of the answer to CONNECT
// http.Transport gives the text of the status as an error without a type.
func IsProxyRefusal(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.Error() {
		case http.StatusText(http.StatusBadGateway), http.StatusText(http.StatusServiceUnavailable), http.StatusText(http.StatusGatewayTimeout):
			return true
		}
	}
	return false
}
