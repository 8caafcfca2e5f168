// SPDX-License-Identifier: Apache-2.0

// Package addresses removes user names and passwords from the addresses of clusters and proxies,
// and recognizes a proxy's errors about unreachable hosts.
package addresses

import "regexp"

// userInfoPattern matches the text between the scheme of an address and its host. A password may
// contain a slash, which makes the address unparsable. So the match ends at the last @ of the
// address.
var userInfoPattern = regexp.MustCompile("([A-Za-z][A-Za-z0-9+.-]*://)[^\\s\"'`<>]*@")

// RedactUserInfo returns a text without the user names and passwords of its addresses.
func RedactUserInfo(text string) string { return userInfoPattern.ReplaceAllString(text, "$1") }

// RedactError returns an error whose text is Plain, or nil for nil.
func RedactError(err error) error {
	if err == nil || !userInfoPattern.MatchString(err.Error()) {
		return err
	}
	return redactedError{err}
}

type redactedError struct{ err error }

func (e redactedError) Error() string { return RedactUserInfo(e.err.Error()) }
func (e redactedError) Unwrap() error { return e.err }
