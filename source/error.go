package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Reason is the kind of an Error, in the form of a reason of a condition.
type Reason string

// The reasons.
const (
	// ReasonAuthenticationFailed: the server does not take the credentials, or wants some.
	ReasonAuthenticationFailed Reason = "AuthenticationFailed"
	// ReasonHostKeyMismatch: the SSH server has another key than known_hosts says, or none is
	// known.
	ReasonHostKeyMismatch Reason = "HostKeyMismatch"
	// ReasonRepositoryNotFound: the server has no such repository, or hides it from these
	// credentials.
	ReasonRepositoryNotFound Reason = "RepositoryNotFound"
	// ReasonReferenceNotFound: the repository has no such branch, tag, version or commit.
	ReasonReferenceNotFound Reason = "ReferenceNotFound"
	// ReasonTagRewritten: a tag names another commit than before.
	ReasonTagRewritten Reason = "TagRewritten"
	// ReasonVerificationFailed: a demanded signature is missing, wrong or of no trusted key; a
	// digest does not match.
	ReasonVerificationFailed Reason = "VerificationFailed"
	// ReasonTooLarge: a limit was met.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonTimeout: it took too long.
	ReasonTimeout Reason = "Timeout"
	// ReasonUnreachable: no connection, one that broke, or an answer that cannot be understood.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonLFSUnsupported: a file is only a pointer of Git LFS.
	ReasonLFSUnsupported Reason = "LFSUnsupported"
	// ReasonSubmoduleMissing: a path is in a submodule that is not read.
	ReasonSubmoduleMissing Reason = "SubmoduleMissing"
	// ReasonDamaged: what is kept of a repository lost something. What was fetched is fetched
	// again.
	ReasonDamaged Reason = "Damaged"
	// ReasonIncomplete: a repository on disk leaves objects elsewhere, as a partial clone does.
	ReasonIncomplete Reason = "Incomplete"
	// ReasonInvalid: settings that cannot work.
	ReasonInvalid Reason = "Invalid"
)

// Error says why something could not be read. It never has credentials in it.
type Error struct {
	Reason Reason
	// Permanent: to try the same again gives the same. Settings, a Secret or the repository have to
	// change first.
	Permanent bool
	// Field is the setting that cannot work, below spec.source of a Landscape; empty where it is
	// not one of them. Message begins with it.
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

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf gives the reason of an error, empty when it is of another kind.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// IsPermanent tells whether trying the same again cannot help.
func IsPermanent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Permanent
}

// permanent are the reasons that stay until somebody changes something.
func (r Reason) permanent() bool {
	switch r {
	case ReasonHostKeyMismatch, ReasonTagRewritten, ReasonVerificationFailed, ReasonTooLarge, ReasonLFSUnsupported,
		ReasonSubmoduleMissing, ReasonInvalid:
		return true
	default:
		return false
	}
}

// failure is an Error without a cause.
func failure(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Permanent: reason.permanent(), Message: fmt.Sprintf(format, args...)}
}

// ofField is the Error of a setting that cannot work.
func ofField(field, format string, args ...any) *Error {
	e := failure(ReasonInvalid, field+" "+format, args...)
	e.Field = field
	return e
}

// unreachable gives the error of a connection its reason. What is of a kind already stays as it is.
func unreachable(ctx context.Context, what string, err error) error {
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
		return &Error{Reason: ReasonTimeout, Message: what + " took too long", Err: plain(err)}
	}
	return &Error{Reason: ReasonUnreachable, Message: what + untrusted(err), Err: plain(err)}
}

// untrusted says what to do about a certificate that is not accepted; empty where that is not what
// is wrong.
func untrusted(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return ": nobody who is trusted here has signed the certificate of the server: put that of its authority into ca.crt of the Secret of secretRef"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return ": the certificate of the server is for other names than the host of the url: change the url, or have it made for this host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return ": the certificate of the server is not valid at this time: have it renewed"
	}
	return ""
}

// plain takes an error of another library to one line of bounded length, since it may have text of
// the server in it.
func plain(err error) error {
	return &plainError{text: printable(err.Error(), 300), err: err}
}

type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// printable makes one line of bounded length of foreign text.
func printable(text string, limit int) string {
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
