// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Reason is the kind of an Error, in the format of a condition reason.
type Reason string

// The reasons.
const (
	// ReasonAuthenticationFailed means that the server rejects the credentials, or requires some.
	ReasonAuthenticationFailed Reason = "AuthenticationFailed"
	// ReasonHostKeyMismatch means that the SSH server's key is not in known_hosts, or differs from
	// it.
	ReasonHostKeyMismatch Reason = "HostKeyMismatch"
	// ReasonRepositoryNotFound means that the server has no such repository, or hides it from these
	// credentials.
	ReasonRepositoryNotFound Reason = "RepositoryNotFound"
	// ReasonReferenceNotFound means that the repository has no such branch, tag, version or commit.
	ReasonReferenceNotFound Reason = "ReferenceNotFound"
	// ReasonTagRewritten means that a tag points to a different commit than before.
	ReasonTagRewritten Reason = "TagRewritten"
	// ReasonVerificationFailed means that a required signature is missing, wrong or by an untrusted
	// key, or that a digest does not match.
	ReasonVerificationFailed Reason = "VerificationFailed"
	// ReasonTooLarge means that a limit was exceeded.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonTimeout means that it took too long.
	ReasonTimeout Reason = "Timeout"
	// ReasonUnreachable means that there is no connection, that it broke, or that the answer is
	// invalid.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonLFSUnsupported means that a file is only a Git LFS pointer.
	ReasonLFSUnsupported Reason = "LFSUnsupported"
	// ReasonSubmoduleMissing means that a path is in a submodule that is not read.
	ReasonSubmoduleMissing Reason = "SubmoduleMissing"
	// ReasonDamaged means that stored objects of a repository are missing or unreadable. A cache is
	// fetched again.
	ReasonDamaged Reason = "Damaged"
	// ReasonIncomplete means that objects of a repository on disk are elsewhere, as in a partial
	// clone.
	ReasonIncomplete Reason = "Incomplete"
	// ReasonInvalid means that the settings cannot work.
	ReasonInvalid Reason = "Invalid"
)

// Error says why something could not be read. It never contains credentials.
type Error struct {
	Reason Reason
	// Permanent means that a retry has the same result. Settings, a Secret or the repository must
	// change first.
	Permanent bool
	// Field is the invalid setting, below spec.source of a Landscape; it is empty if no setting is
	// to blame. Message begins with it.
	Field string
	// Message says what is wrong and what to do.
	Message string
	// Err is the cause, if there is one; Message does not repeat it.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error; the result is empty if it is not an Error.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// IsPermanent reports whether a retry cannot help.
func IsPermanent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Permanent
}

// isPermanent reports whether the error persists until someone changes something.
func (r Reason) isPermanent() bool {
	switch r {
	case ReasonHostKeyMismatch, ReasonTagRewritten, ReasonVerificationFailed, ReasonTooLarge, ReasonLFSUnsupported,
		ReasonSubmoduleMissing, ReasonInvalid:
		return true
	default:
		return false
	}
}

// newError returns an Error without a cause.
func newError(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Permanent: reason.isPermanent(), Message: fmt.Sprintf(format, args...)}
}

// newFieldError returns the Error of an invalid setting.
func newFieldError(field, format string, args ...any) *Error {
	e := newError(ReasonInvalid, field+" "+format, args...)
	e.Field = field
	return e
}

// connectionError wraps the error of a connection in an Error. An Error stays unchanged.
func connectionError(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return &Error{Reason: ReasonTimeout, Message: what + " took too long", Err: cause}
		}
		return &Error{Reason: ReasonUnreachable, Message: what + " was stopped", Err: cause}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return &Error{Reason: ReasonTimeout, Message: what + " took too long", Err: newBoundedError(err)}
	}
	return &Error{Reason: ReasonUnreachable, Message: what + certificateHint(err), Err: newBoundedError(err)}
}

// certificateHint says what to do about a rejected server certificate; the result is empty for
// other errors.
func certificateHint(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return ": the certificate of the server is from an unknown authority: put the authority's certificate into ca.crt of the Secret of secretRef"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return ": the certificate of the server does not name the host of the url: change the url, or issue a certificate for this host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return ": the certificate of the server is not valid at this time: renew it"
	}
	return ""
}

// newBoundedError truncates an error of another library to one line, because it may quote the
// server.
func newBoundedError(err error) error {
	return &boundedError{text: boundedLine(err.Error(), 300), err: err}
}

type boundedError struct {
	text string
	err  error
}

func (e *boundedError) Error() string { return e.text }
func (e *boundedError) Unwrap() error { return e.err }

// boundedLine makes one line of bounded length from foreign text.
func boundedLine(text string, limit int) string {
	var out strings.Builder
	for i, r := range strings.TrimSpace(text) {
		if i >= limit {
			out.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			out.WriteByte(' ')
		case r < 0x20 || r == 0x7f || r == 0xfffd || (r >= 0x80 && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069):
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
