// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io"
	"net/url"
	"regexp"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// wire connects to one Git server. The caller's reader limits all answers except the list of
// references, which maxAdvertised bounds.
type wire interface {
	// references returns all references of the repository, in one request.
	references(context.Context) (*packp.AdvRefs, error)
	// pack requests commits. The caller must close the returned pack.
	pack(context.Context, *packp.UploadPackRequest) (*pack, error)
	close() error
}

// pack is a stream of objects.
type pack struct {
	io.ReadCloser
	// shallow and unshallow are commits whose parents are omitted, or no longer omitted.
	shallow, unshallow []plumbing.Hash
}

// maxAdvertised bounds the list of references, in bytes: about 600,000 references.
const maxAdvertised = 64 * mebibyte

// errLimitExceeded is the error of a limitedReader. The caller wraps it with the limit's name.
var errLimitExceeded = errors.New("more than the limit")

// limitedReader fails with errLimitExceeded beyond a number of bytes, instead of ending.
type limitedReader struct {
	io.Reader
	remaining int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.remaining <= 0 {
		// One more byte distinguishes the end at the limit from data beyond it.
		var one [1]byte
		n, err := l.Reader.Read(one[:])
		if n > 0 {
			return 0, errLimitExceeded
		}
		return 0, err
	}
	if int64(len(p)) > l.remaining {
		p = p[:l.remaining]
	}
	n, err := l.Reader.Read(p)
	l.remaining -= int64(n)
	return n, err
}

// readReferences decodes the references that a server advertises.
func readReferences(reader io.Reader) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(&limitedReader{Reader: reader, remaining: maxAdvertised})
	switch {
	case errors.Is(err, errLimitExceeded):
		return nil, newError(ReasonTooLarge, "the repository has too many references: more than %d MiB of them", maxAdvertised/mebibyte)
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && advertised.IsEmpty():
		return nil, newError(ReasonReferenceNotFound, "the repository is empty: push a commit")
	case err != nil:
		if line, ok := errors.AsType[*pktline.ErrorLine](err); ok {
			return nil, refusalError(line.Text)
		}
		return nil, err
	}
	if format := advertised.Capabilities.Get("object-format"); len(format) > 0 && format[0] != "sha1" {
		return nil, newError(ReasonInvalid, "the repository has %s object names, which are not supported: use one with SHA-1", boundedLine(format[0], 20))
	}
	transport.FilterUnsupportedCapabilities(advertised.Capabilities)
	return advertised, nil
}

// readPack decodes the answer of a server up to the beginning of the pack.
func readPack(request *packp.UploadPackRequest, stream io.ReadCloser) (*pack, error) {
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(stream); err != nil {
		_ = stream.Close()
		if line, ok := errors.AsType[*pktline.ErrorLine](err); ok {
			return nil, refusalError(line.Text)
		}
		return nil, err
	}
	var content io.Reader = response
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		content = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		content = sideband.NewDemuxer(sideband.Sideband, response)
	}
	return &pack{ReadCloser: readCloser{content, response.Close}, shallow: response.Shallows, unshallow: response.Unshallows}, nil
}

type readCloser struct {
	io.Reader
	close func() error
}

func (r readCloser) Close() error { return r.close() }

var (
	notFoundPattern      = regexp.MustCompile(`(?i)not found|does not exist|does not appear to be a git repository|no such|not exported|could not be found|don't have permission|not a git repository|repository unavailable`)
	unknownCommitPattern = regexp.MustCompile(`(?i)not our ref|unadvertised object|no such remote ref`)
	deniedPattern        = regexp.MustCompile(`(?i)permission denied|access denied|not authori[sz]ed|unauthori[sz]ed|authentication`)
)

// refusalError derives the reason from the text of a server's refusal.
func refusalError(answer string) error {
	answer = boundedLine(answer, 200)
	switch {
	case unknownCommitPattern.MatchString(answer):
		return &Error{Reason: ReasonReferenceNotFound, Message: "the server does not serve this commit: it says \"" + answer + "\""}
	case deniedPattern.MatchString(answer):
		return &Error{Reason: ReasonAuthenticationFailed, Message: "the server refuses these credentials: it says \"" + answer + "\""}
	case notFoundPattern.MatchString(answer):
		return &Error{Reason: ReasonRepositoryNotFound, Message: "no such repository, or these credentials do not show it: the server says \"" + answer + "\""}
	}
	return &Error{Reason: ReasonUnreachable, Message: "the server says \"" + answer + "\""}
}

func newWire(options Options, location *url.URL) (wire, error) {
	if options.Offline {
		return offlineWire{location}, nil
	}
	switch location.Scheme {
	case "ssh":
		return newSSHWire(options, location)
	case "file":
		return newLocalWire(location), nil
	default:
		return newHTTPWire(options, location), nil
	}
}
