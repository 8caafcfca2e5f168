// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociauth"
	"cuelabs.dev/go/oci/ociregistry/ociclient"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

const (
	fluxContent     = "application/vnd.cncf.flux.content.v1.tar+gzip"
	defaultTag      = "latest"
	maxManifest     = 4 * mebibyte
	maxTags         = 100_000
	maxArtifacts    = 8
	artifactsFolder = "artifacts"
)

// artifactRemote is an OCI artifact: one layer with the files, as created by `flux push artifact`
// and `oras push`.
//
// Dir/artifacts stores pulled blobs under their digests, compressed. Each snapshot verifies the
// digest and unpacks into a nameless file. So changes on disk are never used, and no name in an
// archive becomes a file name on this machine.
type artifactRemote struct {
	options    Options
	registry   ociregistry.Interface
	transports []*http.Transport
	repository string
	pullSlot   chan struct{}
	// lastTag is the tag that was fetched last.
	lastTag atomic.Pointer[string]

	mutex     sync.Mutex
	temporary bool
	// openArtifacts are the recently used archives, by digest of the manifest.
	openArtifacts map[string]*Snapshot
}

func checkArtifactReference(ref landscapev1alpha1.Reference) error {
	switch {
	case ref.Commit != "":
		return newFieldError("ref.commit", "is for Git: name a digest, a tag or a range")
	case ref.Branch != "":
		return newFieldError("ref.branch", "is for Git: name a digest, a tag or a range")
	case ref.Digest != "" && !isDigest(ref.Digest):
		return newFieldError("ref.digest", "has to be sha256: and 64 hexadecimal digits in lower case")
	case ref.Tag != "" && !ociref.IsValidTag(ref.Tag):
		return newFieldError("ref.tag", "%q cannot be the tag of an artifact", boundedLine(ref.Tag, 100))
	}
	return checkRange(ref)
}

func newArtifactRemote(options Options, location *url.URL) (*artifactRemote, error) {
	repository := strings.Trim(location.Path, "/")
	if !ociref.IsValidRepository(repository) {
		return nil, newError(ReasonInvalid, "%s: %q cannot be the name of an artifact; its tag or digest belongs in ref", location.Redacted(), boundedLine(repository, 100))
	}
	host := location.Host
	reached := &registryDialer{address: host}
	if location.Port() == "" {
		reached.address = net.JoinHostPort(location.Hostname(), map[bool]string{false: "443", true: "80"}[options.Insecure])
	}
	transport, elsewhere := httpTransport(options), httpTransport(options)
	// A client certificate in the Secret is only for the registry.
	elsewhere.TLSClientConfig.Certificates = nil
	if options.Proxy.address == nil {
		transport.DialContext = reached.dial
		elsewhere.DialContext = (&net.Dialer{Timeout: dialTimeout, Control: reached.checkAddress}).DialContext
	}
	registry, err := ociclient.New(host, &ociclient.Options{
		Insecure: options.Insecure,
		Transport: redirectTransport{
			registry: ociauth.NewStdTransport(ociauth.StdTransportParams{
				Config: registryLogins{credentials: options.Credentials, host: host}, Transport: guardedTransport{transport, options, false},
			}),
			otherHosts: guardedTransport{elsewhere, options, true}, host: host, isAddressAllowed: reached.isAddressAllowed,
		},
	})
	if err != nil {
		return nil, newError(ReasonInvalid, "%s: the host cannot be read", location.Redacted())
	}
	return &artifactRemote{options: options, registry: registry, transports: []*http.Transport{transport, elsewhere}, repository: repository, pullSlot: make(chan struct{}, 1), openArtifacts: map[string]*Snapshot{}}, nil
}

// registryLogins provides the registry's login, and nothing to other hosts.
type registryLogins struct {
	credentials Credentials
	host        string
}

// EntryForRegistry implements ociauth.Config.
func (l registryLogins) EntryForRegistry(host string) (ociauth.ConfigEntry, error) {
	if host != l.host {
		return ociauth.ConfigEntry{}, nil
	}
	c := l.credentials
	if login, ok := c.Registries[registryHost(host)]; ok {
		return ociauth.ConfigEntry{Username: login.Username, Password: login.Password, AccessToken: login.Token}, nil
	}
	return ociauth.ConfigEntry{Username: c.Username, Password: c.Password, AccessToken: c.BearerToken}, nil
}

// guardedTransport blocks requests that others could read, and drops the text of error answers.
type guardedTransport struct {
	*http.Transport
	options Options
	// isRedirected means that another host redirected the requests here, and that redirect was
	// checked.
	isRedirected bool
}

// RoundTrip implements http.RoundTripper.
func (g guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if g.options.Offline {
		return nil, notCachedError(g.options.URL)
	}
	if request.URL.Scheme != "https" && !g.options.Insecure {
		return nil, newError(ReasonUnreachable, "the registry redirects to a plain HTTP address on %s: set insecure only if this is intended", request.URL.Host)
	}
	if before := request.Response; !g.isRedirected && before != nil && before.Request != nil && before.Request.URL.Host != request.URL.Host {
		return nil, redirectError(request)
	}
	var handshake atomic.Pointer[error]
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { handshake.Store(&err) },
	}))
	response, err := g.Transport.RoundTrip(request)
	if ended := handshake.Load(); err != nil && ended != nil && isPlainServerError(*ended) {
		return nil, newError(ReasonUnreachable, "the registry at %s does not speak TLS: set insecure: true in the source if plain HTTP is intended", request.URL.Host)
	}
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		// Its text may repeat credentials.
		_ = response.Body.Close()
		response.Body, response.ContentLength = http.NoBody, 0
	}
	return response, err
}

// isPlainServerError reports whether a handshake failed as with a server without TLS: another
// answer, or a closed connection.
func isPlainServerError(err error) bool {
	return errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func (a *artifactRemote) displayURL() string { return a.options.URL }

// Resolve implements Remote. A named digest needs no request.
func (a *artifactRemote) Resolve(ctx context.Context) (Head, error) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	ref := a.options.Ref
	tag := ref.Tag
	switch {
	case ref.Digest != "":
		return Head{Name: ref.Tag, Commit: ref.Digest}, nil
	case ref.SemVer != "":
		var names []string
		for name, err := range a.registry.Tags(ctx, a.repository, "") {
			if err != nil {
				return Head{}, a.registryError(ctx, "list the tags of "+a.displayURL(), err)
			}
			if names = append(names, name); len(names) > maxTags {
				return Head{}, newError(ReasonTooLarge, "%s has more than %d tags", a.displayURL(), maxTags)
			}
		}
		var ok bool
		if tag, ok = highestVersion(ref.SemVer, names); !ok {
			return Head{}, newError(ReasonReferenceNotFound, "%s has no tag in the range %s", a.displayURL(), ref.SemVer)
		}
		var seen []string
		if former := a.lastTag.Load(); former != nil {
			seen = append(seen, *former)
		}
		if err := checkDeletedTag(a.options, tag, seen, func(name string) bool { return slices.Contains(names, name) }); err != nil {
			return Head{}, err
		}
	case tag == "":
		tag = defaultTag
	}
	found, err := a.registry.ResolveTag(ctx, a.repository, tag)
	if err != nil {
		return Head{}, a.registryError(ctx, "ask for tag "+tag+" of "+a.displayURL(), err)
	}
	if !isDigest(string(found.Digest)) {
		return Head{}, newError(ReasonUnreachable, "%s: the registry gives a digest that is not supported: %s", a.displayURL(), boundedLine(string(found.Digest), 100))
	}
	return Head{Name: tag, Commit: string(found.Digest)}, nil
}

// Fetch implements Remote.
func (a *artifactRemote) Fetch(ctx context.Context, head Head) (*Snapshot, error) {
	snapshot, err := a.At(ctx, head.Commit)
	if err != nil {
		return nil, err
	}
	snapshot.Head = head
	a.lastTag.Store(&head.Name)
	return snapshot, nil
}

// At implements Remote.
func (a *artifactRemote) At(ctx context.Context, commit string) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	if !isDigest(commit) {
		return nil, newError(ReasonInvalid, "%q is not the digest of an artifact: sha256: and 64 hexadecimal digits are needed", boundedLine(commit, 80))
	}
	select {
	case a.pullSlot <- struct{}{}:
		defer func() { <-a.pullSlot }()
	case <-ctx.Done():
		return nil, connectionError(ctx, "wait for another fetch of "+a.displayURL(), ctx.Err())
	}
	a.mutex.Lock()
	known := a.openArtifacts[commit]
	a.mutex.Unlock()
	if known == nil {
		var err error
		if known, err = a.open(ctx, commit); err != nil {
			return nil, err
		}
		a.mutex.Lock()
		if len(a.openArtifacts) >= maxCachedRevisions {
			clear(a.openArtifacts)
		}
		a.openArtifacts[commit] = known
		a.mutex.Unlock()
	}
	copied := *known
	return &copied, nil
}

// open returns an artifact from the cache, or pulls it.
func (a *artifactRemote) open(ctx context.Context, manifestDigest string) (*Snapshot, error) {
	dir, err := a.artifactsDir()
	if err != nil {
		return nil, err
	}
	raw, err := a.cachedBlob(ctx, dir, manifestDigest, "", maxManifest, func() (ociregistry.BlobReader, error) {
		return a.registry.GetManifest(ctx, a.repository, digest.Digest(manifestDigest))
	})
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	data, err := io.ReadAll(raw)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	layer, manifest, err := selectLayer(data)
	if err != nil {
		return nil, err
	}
	if layer.Size > a.options.Limits.Transferred {
		return nil, newError(ReasonTooLarge, "%s is too large: %d MiB, more than %d", a.displayURL(), layer.Size/mebibyte, a.options.Limits.Transferred/mebibyte)
	}
	packed, err := a.cachedBlob(ctx, dir, string(layer.Digest), ".tar.gz", a.options.Limits.Transferred, func() (ociregistry.BlobReader, error) {
		return a.registry.GetBlob(ctx, a.repository, layer.Digest)
	})
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	when, _ := time.Parse(time.RFC3339, manifest.Annotations[ocispec.AnnotationCreated])
	files, err := unpack(ctx, packed, dir, when, a.options.Limits)
	if err != nil {
		return nil, err
	}
	origin := strings.TrimSpace(manifest.Annotations[ocispec.AnnotationSource] + " " + manifest.Annotations[ocispec.AnnotationRevision])
	return &Snapshot{Head: Head{Commit: manifestDigest}, FS: files, Time: when, Origin: boundedLine(origin, 300),
		Author: boundedLine(manifest.Annotations[ocispec.AnnotationAuthors], 200), Subject: boundedLine(manifest.Annotations[ocispec.AnnotationTitle], 200)}, nil
}

// selectLayer selects the layer with the files.
func selectLayer(data []byte) (ocispec.Descriptor, ocispec.Manifest, error) {
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return ocispec.Descriptor{}, manifest, newError(ReasonInvalid, "the manifest of the artifact cannot be read")
	}
	var found []ocispec.Descriptor
	for _, layer := range manifest.Layers {
		switch layer.MediaType {
		case fluxContent:
			return layer, manifest, checkDigest(layer)
		case ocispec.MediaTypeImageLayerGzip, "application/vnd.docker.image.rootfs.diff.tar.gzip", "application/tar+gzip", "application/gzip", "application/x-gzip", "application/x-gtar", "application/x-tgz":
			found = append(found, layer)
		default:
			if strings.HasSuffix(layer.MediaType, "tar+gzip") || strings.HasSuffix(layer.MediaType, "tar.gzip") {
				found = append(found, layer)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], manifest, checkDigest(found[0])
	case 0:
		return ocispec.Descriptor{}, manifest, newError(ReasonInvalid, "the artifact has no layer of a compressed archive (tar+gzip): push it with `flux push artifact`, or with `oras push` and a folder")
	default:
		return ocispec.Descriptor{}, manifest, newError(ReasonInvalid, "the artifact has %d layers of archives: it needs one", len(found))
	}
}

func checkDigest(layer ocispec.Descriptor) error {
	if !isDigest(string(layer.Digest)) {
		return newError(ReasonInvalid, "the artifact has a layer with a digest that is not supported: %s", boundedLine(string(layer.Digest), 100))
	}
	return nil
}

// cachedBlob returns a file of the cache after verifying its digest. It pulls a missing or damaged
// file.
func (a *artifactRemote) cachedBlob(ctx context.Context, dir, name, ending string, limit int64, pull func() (ociregistry.BlobReader, error)) (*os.File, error) {
	file := filepath.Join(dir, strings.ReplaceAll(name, ":", "-")+ending)
	if err := verifyDigest(file, name); err != nil {
		if a.options.Offline {
			return nil, notCachedError(a.displayURL())
		}
		_ = os.Remove(file)
		reader, err := pull()
		if err != nil {
			return nil, a.registryError(ctx, "pull "+a.displayURL()+"@"+name, err)
		}
		verifier := digest.Digest(name).Verifier()
		err = writeVerified(dir, filepath.Base(file), io.TeeReader(&limitedReader{Reader: reader, remaining: limit}, verifier), verifier)
		_ = reader.Close()
		switch {
		case errors.Is(err, errLimitExceeded):
			return nil, newError(ReasonTooLarge, "%s is too large: more than %d MiB", a.displayURL(), limit/mebibyte)
		case err != nil:
			return nil, a.registryError(ctx, "pull "+a.displayURL()+"@"+name, err)
		}
	}
	now := a.options.Clock.Now()
	_ = os.Chtimes(file, now, now)
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open the cache of %s: %w", a.displayURL(), err)
	}
	return opened, nil
}

// writeVerified renames a file to its final name only if its digest matches.
func writeVerified(dir, name string, content io.Reader, verifier digest.Verifier) error {
	return writeFile(dir, name, &verifiedReader{content, verifier})
}

type verifiedReader struct {
	io.Reader
	verifier digest.Verifier
}

func (v *verifiedReader) Read(p []byte) (int, error) {
	n, err := v.Reader.Read(p)
	if errors.Is(err, io.EOF) && !v.verifier.Verified() {
		return n, newError(ReasonVerificationFailed, "the content from the registry does not match its digest")
	}
	return n, err
}

func verifyDigest(file, want string) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	verifier := digest.Digest(want).Verifier()
	if _, err := io.Copy(verifier, opened); err != nil {
		return err
	}
	if !verifier.Verified() {
		return errors.New("it was changed")
	}
	return nil
}

// registryError adds a reason to an error of the registry, without text by the registry.
func (a *artifactRemote) registryError(ctx context.Context, what string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if ctx.Err() == nil {
		if answer, ok := errors.AsType[ociregistry.HTTPError](err); ok {
			switch code := answer.StatusCode(); code {
			case http.StatusUnauthorized, http.StatusForbidden:
				return newError(ReasonAuthenticationFailed, "%s: the registry rejects the credentials (%d): they are missing, wrong or expired", what, code)
			case http.StatusNotFound:
				if strings.HasPrefix(what, "list") {
					return newError(ReasonRepositoryNotFound, "%s: no such artifact, or these credentials do not show it (404)", what)
				}
				return newError(ReasonReferenceNotFound, "%s: no such artifact, or these credentials do not show it (404)", what)
			case http.StatusTooManyRequests:
				return newError(ReasonUnreachable, "%s: the registry received too many requests (429)", what)
			default:
				return newError(ReasonUnreachable, "%s: the registry answers with status %d", what, code)
			}
		}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return connectionError(ctx, what, err)
}

// artifactsDir returns the folder of the artifacts. It removes incomplete and old files.
func (a *artifactRemote) artifactsDir() (string, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.options.Dir == "" {
		dir, err := os.MkdirTemp("", "pergola-source-")
		if err != nil {
			return "", fmt.Errorf("make the cache: %w", err)
		}
		a.options.Dir, a.temporary = dir, true
	}
	dir := filepath.Join(a.options.Dir, artifactsFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	return dir, removeOldArtifacts(dir)
}

// Close implements Remote.
func (a *artifactRemote) Close() error {
	a.pullSlot <- struct{}{}
	defer func() { <-a.pullSlot }()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, transport := range a.transports {
		transport.CloseIdleConnections()
	}
	clear(a.openArtifacts)
	if a.temporary {
		err := os.RemoveAll(a.options.Dir)
		a.options.Dir, a.temporary = "", false
		return err
	}
	return nil
}
