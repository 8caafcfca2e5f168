// Package addresses shows addresses of clusters and proxies without the user and password that may
// stand in them, and knows what a proxy says of one that it cannot reach.
package addresses

import "regexp"

// userInfo is what stands between the scheme of an address and its host. A password may hold a
// slash, with which the address is none that can be parsed; so it ends at the last @ of what may be
// an address.
var userInfo = regexp.MustCompile("([A-Za-z][A-Za-z0-9+.-]*://)[^\\s\"'`<>]*@")

// Plain gives a text with its addresses, without users and passwords.
func Plain(text string) string { return userInfo.ReplaceAllString(text, "$1") }

// Error gives an error whose text is Plain; nil for nil.
func Error(err error) error {
	if err == nil || !userInfo.MatchString(err.Error()) {
		return err
	}
	return plainError{err}
}

type plainError struct{ err error }

func (e plainError) Error() string { return Plain(e.err.Error()) }
func (e plainError) Unwrap() error { return e.err }
