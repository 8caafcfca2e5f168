// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jenkins-x/go-scm/scm"
	"github.com/jenkins-x/go-scm/scm/driver/github"
	"github.com/jenkins-x/go-scm/scm/driver/gitlab"
)

// The forges.
const (
	GitHub  = "github"
	GitLab  = "gitlab"
	Gitea   = "gitea"
	Forgejo = "forgejo"
)

// Providers returns all forges, for flags and messages.
func Providers() []string { return []string{GitHub, GitLab, Gitea, Forgejo} }

// Options select the forge and the user.
type Options struct {
	// Provider is one of Providers.
	Provider string
	// URL is the URL of the forge or its API. The default is github.com or gitlab.com; it is
	// required for Gitea and Forgejo.
	URL string
	// Token is the token for authentication.
	Token string
	// CA holds trusted certificates, as PEM, besides those of the system.
	CA []byte
	// Proxy returns the proxy of a request, like http.ProxyFromEnvironment. The default is none.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout is the timeout of one request. The default is 30s.
	Timeout time.Duration
}

// Forge is a client of one forge as one user.
type Forge struct {
	provider string
	client   *scm.Client
	http     *http.Client
	redact   func(string) string
}

// New checks the options; it sends no request.
func New(o Options) (*Forge, error) {
	base, err := apiURL(o.Provider, o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, fmt.Errorf("%s at %s: no token is given", o.Provider, base.Host)
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("%s at %s: the token has characters that no token has (a line break?)", o.Provider, base.Host)
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = o.Proxy
	transport.MaxResponseHeaderBytes = 64 << 10
	if len(o.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("ca.crt holds no certificate as PEM")
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	f := &Forge{provider: o.Provider, redact: func(text string) string { return strings.ReplaceAll(text, o.Token, "[token]") }}
	f.http = &http.Client{
		Timeout:       o.Timeout,
		Transport:     &authTransport{provider: o.Provider, base: base, token: o.Token, redact: f.redact, next: transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if o.Provider == GitLab {
		f.client, err = gitlab.New(base.String())
	} else {
		f.client, err = github.New(base.String())
	}
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", o.Provider, base.Host, err)
	}
	f.client.Client = f.http
	return f, nil
}

// Close closes idle connections.
func (f *Forge) Close() { f.http.CloseIdleConnections() }

// apiURL returns the address for the driver, without a trailing slash.
func apiURL(provider, given string) (*url.URL, error) {
	var public, suffix string
	switch provider {
	case GitHub:
		public, suffix = "https://api.github.com", "/api/v3"
	case GitLab:
		public = "https://gitlab.com"
	case Gitea, Forgejo:
		suffix = "/api/v1"
	default:
		return nil, fmt.Errorf("provider %q: want one of %s", provider, strings.Join(Providers(), ", "))
	}
	if given == "" {
		given = public
	}
	if given == "" {
		return nil, fmt.Errorf("%s has no address of its own: give the URL of yours", provider)
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("the address of %s is not a URL such as https://git.example.com", provider)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	u.Path = strings.TrimRight(u.Path, "/")
	switch host := strings.ToLower(u.Host); {
	case provider == GitHub && (host == "github.com" || host == "www.github.com" || host == "api.github.com"):
		return url.Parse(public)
	case provider == GitHub && strings.HasPrefix(host, "api."): // a tenant of ghe.com
	case provider == GitHub && strings.HasSuffix(host, ".ghe.com"):
		u.Host = "api." + u.Host
	case provider == GitLab:
		u.Path = strings.TrimSuffix(u.Path, "/api/v4")
	case !strings.HasSuffix(u.Path, suffix):
		u.Path += suffix
	}
	return u, nil
}

var repositoryNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`)

// checkRepository rejects names that would become another path of the API.
func checkRepository(name string) error {
	if !repositoryNamePattern.MatchString(name) || strings.Contains("/"+name+"/", "/../") || strings.Contains("/"+name+"/", "/./") {
		return fmt.Errorf("repository %q: want owner/name", name)
	}
	return nil
}

// LocateRepository returns the forge and repository name of a source URL. at is the address of the
// forge if it is known (a forge below a path, or with its API elsewhere). Then only the name is
// computed.
func LocateRepository(source, at string) (forge, repository string, err error) {
	u, err := url.Parse(source)
	if err != nil || u.Host == "" {
		return "", "", errors.New("the URL of the source names no host, so its forge is unknown")
	}
	repository = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	switch u.Scheme {
	case "http", "https":
		forge = u.Scheme + "://" + u.Host
	case "ssh":
		host := u.Hostname()
		if host == "ssh.github.com" || host == "altssh.gitlab.com" {
			_, host, _ = strings.Cut(host, ".")
		}
		forge = "https://" + host
	default:
		return "", "", fmt.Errorf("a source with scheme %s is not on a forge", u.Scheme)
	}
	if at != "" {
		forge = at
		if a, err := url.Parse(at); err == nil {
			prefix := strings.Trim(a.Path, "/")
			for _, api := range []string{"api/v1", "api/v3", "api/v4"} {
				prefix = strings.Trim(strings.TrimSuffix(prefix, api), "/")
			}
			if prefix != "" {
				repository = strings.TrimPrefix(repository, prefix+"/")
			}
		}
	}
	if err := checkRepository(repository); err != nil {
		return "", "", err
	}
	return forge, repository, nil
}

// TokenLogin returns the login of the token, or "" if the token may not ask, like many tokens of CI
// jobs.
func (f *Forge) TokenLogin(ctx context.Context) (string, error) {
	user, _, err := f.client.Users.Find(ctx)
	var refused *Error
	switch {
	case errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound):
		if !refused.IsTemporary() {
			return "", nil
		}
	case err == nil && user != nil:
		return user.Login, nil
	}
	return "", f.wrapError("reading the user of the token", err)
}
