// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
)

// Credentials authenticate a connection to a server. They never print.
type Credentials struct {
	// Username and Password are the username and the password for HTTPS and OCI.
	Username, Password string
	// BearerToken is the bearer token for HTTPS and OCI.
	BearerToken string
	// CA has trusted certificates besides those of the system.
	CA []byte
	// Certificate is the client certificate.
	Certificate *tls.Certificate
	// Identity is the key for SSH.
	Identity ssh.Signer
	// KnownHosts are the keys of SSH servers, in the format of known_hosts.
	KnownHosts []byte
	// Registries are logins by host, from a Secret of type kubernetes.io/dockerconfigjson.
	Registries map[string]Login
}

// Login is the login of one registry.
type Login struct{ Username, Password, Token string }

// String shows nothing secret.
func (Credentials) String() string { return "credentials" }

// GoString shows nothing secret.
func (Credentials) GoString() string { return "credentials" }

// String shows nothing secret.
func (Login) String() string { return "login" }

// GoString shows nothing secret.
func (Login) GoString() string { return "login" }

// hasHTTPSecrets reports whether a plain HTTP connection would reveal a secret.
func (c Credentials) hasHTTPSecrets() bool {
	return c.Username != "" || c.Password != "" || c.BearerToken != "" || len(c.Registries) > 0
}

// The keys of Secrets.
const (
	keyUsername    = corev1.BasicAuthUsernameKey
	keyPassword    = corev1.BasicAuthPasswordKey
	keyBearerToken = "bearerToken"
	keyCA          = "ca.crt"
	keyCertificate = corev1.TLSCertKey
	keyPrivateKey  = corev1.TLSPrivateKeyKey
	keyIdentity    = "identity"
	keyKnownHosts  = "known_hosts"
	keyAddress     = "address"
)

// CredentialsOf reads the Secret of a URL. Errors name keys that are missing or contradict each
// other, never their values.
func CredentialsOf(address string, data map[string][]byte) (Credentials, error) {
	location, err := url.Parse(address)
	if err != nil {
		return Credentials{}, newError(ReasonInvalid, "the url of the source cannot be read")
	}
	switch location.Scheme {
	case "ssh":
		return sshCredentials(data)
	case "file":
		return Credentials{}, newError(ReasonInvalid, "a file url takes no credentials: leave secretRef out")
	}
	out := Credentials{
		Username: trimLineEnd(data[keyUsername]), Password: trimLineEnd(data[keyPassword]), BearerToken: trimLineEnd(data[keyBearerToken]), CA: data[keyCA],
	}
	if location.Scheme == "oci" && len(data[corev1.DockerConfigJsonKey]) > 0 {
		if out.Registries, err = registriesOf(data[corev1.DockerConfigJsonKey]); err != nil {
			return Credentials{}, err
		}
	}
	if err := out.checkHTTP(location.Scheme, data); err != nil {
		return Credentials{}, err
	}
	if err := out.readCertificates(data); err != nil {
		return Credentials{}, err
	}
	return out, nil
}

func (c Credentials) checkHTTP(scheme string, data map[string][]byte) error {
	switch {
	case c.BearerToken != "" && (c.Username != "" || c.Password != ""):
		return newError(ReasonInvalid, "the Secret has bearerToken and username or password: only one of the two can be sent")
	case len(c.Registries) > 0 && (c.BearerToken != "" || c.Username != "" || c.Password != ""):
		return newError(ReasonInvalid, "the Secret has .dockerconfigjson and another login: only one of the two can be sent")
	case c.Username != "" && c.Password == "":
		return newError(ReasonInvalid, "the Secret has username and no password")
	case c.Username == "" && c.Password != "":
		return newError(ReasonInvalid, "the Secret has password and no username: forges take any name with a token, for example git")
	case strings.ContainsAny(c.BearerToken+c.Username+c.Password, "\r\n\x00"):
		return newError(ReasonInvalid, "a login of the Secret has a line break in it")
	case strings.Contains(c.Username, ":"):
		return newError(ReasonInvalid, "username of the Secret has a colon in it, which HTTP cannot send")
	}
	for _, key := range []string{keyUsername, keyPassword, keyBearerToken, keyCA, keyCertificate, keyPrivateKey, corev1.DockerConfigJsonKey} {
		if len(data[key]) > 0 {
			return nil
		}
	}
	if len(data[keyIdentity]) > 0 {
		return newError(ReasonInvalid, "the Secret has a key for SSH (identity), but the url is %s: use ssh://, or username and password", scheme)
	}
	return newError(ReasonInvalid, "the Secret has no credentials for %s: it needs username and password, bearerToken, ca.crt, or tls.crt and tls.key", scheme)
}

func (c *Credentials) readCertificates(data map[string][]byte) error {
	if len(c.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CA) {
		return newError(ReasonInvalid, "ca.crt of the Secret has no certificate in PEM form")
	}
	if (len(data[keyCertificate]) > 0) != (len(data[keyPrivateKey]) > 0) {
		return newError(ReasonInvalid, "the Secret has only one of tls.crt and tls.key: both are needed")
	}
	if len(data[keyCertificate]) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivateKey])
	if err != nil {
		return newError(ReasonInvalid, "tls.crt and tls.key of the Secret are not a certificate and its key in PEM form")
	}
	c.Certificate = &pair
	return nil
}

func sshCredentials(data map[string][]byte) (Credentials, error) {
	if len(data[keyIdentity]) == 0 {
		return Credentials{}, newError(ReasonInvalid, "the Secret has no identity: it needs the private key for SSH")
	}
	if len(strings.TrimSpace(string(data[keyKnownHosts]))) == 0 {
		return Credentials{}, newError(ReasonInvalid, "the Secret has no known_hosts, so the server cannot be verified: add its keys from `ssh-keyscan HOST` after comparing them")
	}
	var signer ssh.Signer
	var err error
	if password := data[keyPassword]; len(password) > 0 {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(data[keyIdentity], []byte(trimLineEnd(password)))
		if err != nil {
			// A passphrase may accompany a key that needs none.
			signer, err = ssh.ParsePrivateKey(data[keyIdentity])
		}
	} else {
		signer, err = ssh.ParsePrivateKey(data[keyIdentity])
	}
	if err != nil {
		if _, locked := err.(*ssh.PassphraseMissingError); locked && len(data[keyPassword]) == 0 {
			return Credentials{}, newError(ReasonInvalid, "identity of the Secret has a passphrase: put it into the key password")
		} else if locked {
			return Credentials{}, newError(ReasonInvalid, "the passphrase in the key password of the Secret does not open identity")
		}
		return Credentials{}, newError(ReasonInvalid, "identity of the Secret is not a readable private key: it has to be in OpenSSH or PEM form")
	}
	if _, err := hostKeys(data[keyKnownHosts]); err != nil {
		return Credentials{}, err
	}
	return Credentials{Identity: signer, KnownHosts: data[keyKnownHosts]}, nil
}

func registriesOf(data []byte) (map[string]Login, error) {
	var file struct {
		Auths map[string]struct {
			Username      string `json:"username"`
			Password      string `json:"password"`
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if json.Unmarshal(data, &file) != nil || len(file.Auths) == 0 {
		return nil, newError(ReasonInvalid, ".dockerconfigjson of the Secret has no auths")
	}
	out := map[string]Login{}
	for key, entry := range file.Auths {
		login := Login{Username: entry.Username, Password: entry.Password, Token: entry.RegistryToken}
		if entry.IdentityToken != "" {
			return nil, newError(ReasonInvalid, ".dockerconfigjson of the Secret has an identitytoken, which is not supported: use username and password")
		}
		if login.Username == "" && entry.Auth != "" {
			decoded, err := base64.StdEncoding.DecodeString(entry.Auth)
			name, password, ok := strings.Cut(string(decoded), ":")
			if err != nil || !ok {
				return nil, newError(ReasonInvalid, "an auth in .dockerconfigjson of the Secret is not the base64 of name:password")
			}
			login.Username, login.Password = name, password
		}
		out[registryHost(key)] = login
	}
	return out, nil
}

// registryHost converts a key of dockerconfigjson to a host: `https://index.docker.io/v1/` means
// registry-1.docker.io.
func registryHost(key string) string {
	if _, rest, ok := strings.Cut(key, "://"); ok {
		key = rest
	}
	host, _, _ := strings.Cut(key, "/")
	if host == "index.docker.io" || host == "docker.io" {
		return "registry-1.docker.io"
	}
	return host
}

// Proxy is the proxy of connections. It prints as its address, without the login.
type Proxy struct {
	address *url.URL
}

// String shows only the address.
func (p Proxy) String() string {
	if p.address == nil {
		return "no proxy"
	}
	return p.address.Scheme + "://" + p.address.Host
}

// GoString shows only the address.
func (p Proxy) GoString() string { return p.String() }

// ProxyOf reads a Secret with the address of an HTTP, HTTPS or SOCKS5 proxy, its username and
// password.
func ProxyOf(data map[string][]byte) (Proxy, error) {
	raw := trimLineEnd(data[keyAddress])
	if raw == "" {
		return Proxy{}, newError(ReasonInvalid, "the Secret of the proxy has no address: it needs one like http://proxy:3128 or socks5://proxy:1080")
	}
	address, err := url.Parse(raw)
	if err != nil || address.Host == "" {
		return Proxy{}, newError(ReasonInvalid, "address of the proxy's Secret cannot be read: it needs a form like http://proxy:3128 or socks5://proxy:1080")
	}
	if address.User != nil {
		return Proxy{}, newError(ReasonInvalid, "address of the proxy's Secret has a login in it: put it into the keys username and password")
	}
	switch address.Scheme {
	case "http", "https", "socks5":
	default:
		return Proxy{}, newError(ReasonInvalid, "address of the proxy's Secret has the scheme %q: use http, https or socks5", boundedLine(address.Scheme, 20))
	}
	username, password := trimLineEnd(data[keyUsername]), trimLineEnd(data[keyPassword])
	if username == "" && password != "" {
		return Proxy{}, newError(ReasonInvalid, "the Secret of the proxy has password and no username")
	}
	out := &url.URL{Scheme: address.Scheme, Host: address.Host}
	if username != "" {
		out.User = url.UserPassword(username, password)
	}
	if out.Port() == "" {
		out.Host = fmt.Sprintf("%s:%s", address.Host, map[string]string{"http": "80", "https": "443", "socks5": "1080"}[address.Scheme])
	}
	return Proxy{address: out}, nil
}

// trimLineEnd returns a value without the line break that editors and shells add at its end.
func trimLineEnd(value []byte) string { return strings.TrimRight(string(value), "\r\n") }
