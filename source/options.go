// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net/url"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Options are the options of a Remote. Nothing is read from the environment, ~/.ssh or
// ~/.gitconfig.
type Options struct {
	// URL is the URL of the repository (https, http, ssh, file) or, without a tag, of the artifact
	// (oci).
	URL string
	// Ref selects the revision. The default is branch main, and the tag latest for an artifact.
	Ref landscapev1alpha1.Reference
	// Submodules includes submodules.
	Submodules bool
	// Insecure allows credentials, and artifacts, over plain HTTP.
	Insecure bool
	// Timeout is the timeout of one Resolve, Fetch or At. The default is 2m.
	Timeout time.Duration
	// Credentials are the credentials for the server; see CredentialsOf.
	Credentials Credentials
	// Proxy is the proxy for connections; see ProxyOf. Zero means none.
	Proxy Proxy
	// Verify requires signatures. Git only.
	Verify *Verification
	// Dir caches fetched objects. It belongs to this remote alone; a damaged cache, or one of
	// another URL, is recreated. Empty means a temporary folder that Close removes.
	Dir string
	// Offline makes no connection and needs no credentials: only the content of Dir is available,
	// and is verified as usual.
	Offline bool
	// AppliedRevision is the revision that was applied last, in the format of Head.Revision. It
	// detects a rewritten tag even if Dir was lost.
	AppliedRevision string
	// Limits are the limits of transfers and storage.
	Limits Limits
	// Clock is the clock for the validity of keys. The default is the real one.
	Clock clock.PassiveClock
}

// Verification configures the required signatures.
type Verification struct {
	// Mode says which objects must be signed. The default is HEAD.
	Mode landscapev1alpha1.VerificationMode
	// Keys are files with trusted public keys.
	Keys map[string][]byte
}

// Limits bound the cost of a remote. Zero means the default.
type Limits struct {
	// Transferred is the maximum number of transferred bytes of one request. The default is 256
	// MiB.
	Transferred int64
	// Unpacked is the maximum number of unpacked bytes of one fetch. The default is 1 GiB.
	Unpacked int64
	// File is the maximum size of a file that is read. Larger ones may exist. The default is 32
	// MiB.
	File int64
	// Object is the maximum size of a transferred file, read or not: it is held in memory while the
	// transfer is checked. The default is 128 MiB.
	Object int64
	// Files is the maximum number of files of one revision. The default is 100,000.
	Files int
	// Submodules is the maximum number of submodules of one revision, nested ones included. The
	// default is 32.
	Submodules int
}

const (
	defaultTimeout = 2 * time.Minute
	mebibyte       = 1 << 20
	// maxFolderDepth bounds nested folders, maxSubmoduleDepth nested submodules.
	maxFolderDepth    = 64
	maxSubmoduleDepth = 4
)

func (l Limits) withDefaults() Limits {
	set := func(value *int64, standard int64) {
		if *value <= 0 {
			*value = standard
		}
	}
	set(&l.Transferred, 256*mebibyte)
	set(&l.Unpacked, 1024*mebibyte)
	set(&l.File, 32*mebibyte)
	set(&l.Object, 128*mebibyte)
	if l.Files <= 0 {
		l.Files = 100_000
	}
	if l.Submodules <= 0 {
		l.Submodules = 32
	}
	return l
}

// NewRemote checks the options without a connection. Its errors are permanent.
func NewRemote(options Options) (Remote, error) {
	r, err := newRemote(options)
	if err != nil {
		return nil, err
	}
	return withRedaction(r, options), nil
}

func newRemote(options Options) (Remote, error) {
	options.Limits = options.Limits.withDefaults()
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	location, err := parseSourceURL(options)
	if err != nil {
		return nil, err
	}
	trusted, err := trustedKeys(options)
	if err != nil {
		return nil, err
	}
	if location.Scheme == "oci" {
		if err := checkArtifactReference(options.Ref); err != nil {
			return nil, err
		}
		return newArtifactRemote(options, location)
	}
	if err := checkGitReference(options.Ref); err != nil {
		return nil, err
	}
	return newGitRemote(options, location, trusted)
}

// parseSourceURL parses the URL and checks it against the credentials.
func parseSourceURL(options Options) (*url.URL, error) {
	location, err := url.Parse(options.URL)
	if err != nil {
		return nil, newError(ReasonInvalid, "the url of the source cannot be read")
	}
	if _, secret := location.User.Password(); secret {
		return nil, newError(ReasonInvalid, "the url of the source contains a password: move it to the Secret of secretRef (key password)")
	}
	if location.RawQuery != "" || location.Fragment != "" {
		return nil, newError(ReasonInvalid, "the url of the source has a query or a fragment: leave them out")
	}
	shown := location.Redacted()
	if location.Scheme != "ssh" {
		// A token is often written instead of a user name.
		bare := *location
		bare.User = nil
		shown = bare.String()
	}
	switch location.Scheme {
	case "https", "oci":
	case "http":
		if options.Credentials.hasHTTPSecrets() && !options.Insecure {
			return nil, newError(ReasonInvalid, "%s: credentials over plain HTTP can be read by others: use https, or set insecure", shown)
		}
	case "ssh":
		if options.Credentials.Identity == nil && !options.Offline {
			return nil, newError(ReasonInvalid, "%s: SSH needs a Secret with identity and known_hosts: set secretRef", shown)
		}
	case "file":
		if location.Host != "" || !strings.HasPrefix(location.Path, "/") {
			return nil, newError(ReasonInvalid, "%s: a file url has three slashes and an absolute path: file:///srv/landscape.git", shown)
		}
	default:
		return nil, newError(ReasonInvalid, "%s: the scheme %q is not supported: use https, ssh, http, file or oci; git@host:path is written ssh://git@host/path", shown, location.Scheme)
	}
	if location.Scheme != "file" && (location.Hostname() == "" || strings.Trim(location.Path, "/") == "") {
		return nil, newError(ReasonInvalid, "%s: a host and a path are needed", shown)
	}
	if location.User != nil && location.Scheme != "ssh" {
		return nil, newError(ReasonInvalid, "%s: a user name in the url is not supported: put it into the Secret of secretRef (key username)", shown)
	}
	if options.Verify != nil && location.Scheme == "oci" {
		return nil, newError(ReasonInvalid, "%s: signatures of artifacts are not verified: leave verify out, or name the digest in ref", shown)
	}
	if options.Submodules && location.Scheme == "oci" {
		return nil, newError(ReasonInvalid, "%s: an artifact has no submodules: leave submodules out", shown)
	}
	return location, nil
}

func checkGitReference(ref landscapev1alpha1.Reference) error {
	switch {
	case ref.Digest != "":
		return newFieldError("ref.digest", "is for OCI artifacts: name a commit")
	case len(ref.Commit) == 64 && isHex(ref.Commit):
		return newFieldError("ref.commit", "has 64 digits: repositories with SHA-256 object names are not supported")
	case ref.Commit != "" && !isCommit(ref.Commit):
		return newFieldError("ref.commit", "has to be 40 hexadecimal digits in lower case")
	}
	for field, name := range map[string]string{"branch": ref.Branch, "tag": ref.Tag} {
		if name != "" && !isValidReferenceName(name) {
			return newFieldError("ref."+field, "%q cannot be the name of a %s: give it without refs/", boundedLine(name, 100), field)
		}
	}
	return checkRange(ref)
}

func checkRange(ref landscapev1alpha1.Reference) error {
	if ref.SemVer == "" {
		return nil
	}
	if _, err := semver.NewConstraint(ref.SemVer); err != nil {
		return newFieldError("ref.semver", "%q is not a range of versions: write it like \">=1.2.0 <2\"", boundedLine(ref.SemVer, 100))
	}
	return nil
}

// isValidReferenceName checks the Git rules that prevent a name from having another meaning.
func isValidReferenceName(name string) bool {
	if len(name) > 255 || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") ||
		strings.HasSuffix(name, ".lock") || strings.Contains(name, "..") || strings.Contains(name, "//") || strings.Contains(name, "@{") ||
		strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") || name == "@" {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("~^:?*[\\", r) })
}
